import type { CellResult } from '../../cell.ts';
import type { LauncherScene } from '../launcher-scene.ts';
import { check, PASS } from '../verdicts.ts';
import { checkPeace, hasMark, sentDomains } from './peace.ts';

type RunningVm = Awaited<ReturnType<LauncherScene['runVm']>>;

/** Deletes a VM whose guest listens. */
async function shutDown(scene: LauncherScene, { handler, launcher }: RunningVm): Promise<CellResult> {
  await scene.must(handler, 'stop');
  await scene.until('the end of the domain', () => !scene.isDomainActive);
  await scene.until('the end of the launcher', () => launcher.hasEnded);
  check(scene.daemon.callsOf('DOMAIN_DESTROY_FLAGS').length === 0, 'the domain was destroyed');
  checkPeace(handler);
  return PASS;
}

/** Deletion with a guest that shuts down. */
export async function gracefulStop(scene: LauncherScene): Promise<CellResult> {
  return await shutDown(scene, await scene.runVm({ shutdownDelayMs: 60 }));
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

/** The pod is ended under a VMI that nobody deletes: the mark tells the handler, which asks for the guest's shutdown. */
export async function podEnd(scene: LauncherScene): Promise<CellResult> {
  const vm = await scene.runVm({ shutdownDelayMs: 60 });
  const { handler, launcher } = vm;
  await scene.must(handler, 'update');
  await scene.must(handler, 'resync');
  const domains = [...sentDomains(handler), handler.domain(scene.vmi.metadata)];
  check(!domains.some(hasMark), 'a domain is marked for graceful shutdown, and nobody ends its pod');
  launcher.terminate();
  await scene.until('the mark at the handler', () => hasMark(handler.domain(scene.vmi.metadata)));
  const isAsked = scene.daemon.callsOf('DOMAIN_SHUTDOWN_FLAGS').length > 0;
  check(!isAsked && scene.isDomainActive, 'the launcher did not leave the shutdown to the handler');
  return await shutDown(scene, vm);
}
