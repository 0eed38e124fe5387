import type { CellResult } from '../../cell.ts';
import type { LauncherScene } from '../launcher-scene.ts';
import { check, PASS } from '../verdicts.ts';
import { checkPeace } from './peace.ts';

/** Deletion with a guest that shuts down. */
export async function gracefulStop(scene: LauncherScene): Promise<CellResult> {
  const { handler, launcher } = await scene.runVm({ shutdownDelayMs: 60 });
  await scene.must(handler, 'stop');
  await scene.until('the end of the domain', () => !scene.isDomainActive);
  await scene.until('the end of the launcher', () => launcher.hasEnded);
  check(scene.daemon.callsOf('DOMAIN_DESTROY_FLAGS').length === 0, 'the domain was destroyed');
  checkPeace(handler);
  return PASS;
}

/** The grace period is over, and the guest does not listen. */
export async function kill(scene: LauncherScene): Promise<CellResult> {
  const { handler, launcher } = await scene.runVm({ onShutdown: 'ignore' });
  await scene.must(handler, 'kill');
  await scene.until('the end of the domain', () => !scene.isDomainActive);
  await scene.until('the end of the launcher', () => launcher.hasEnded);
  checkPeace(handler);
  return PASS;
}
