import type { CellResult } from '../../cell.ts';
import { RELEASE_LINES } from '../../release-line.ts';
import type { LauncherScene } from '../launcher-scene.ts';
import { check, PASS } from '../verdicts.ts';
import { checkPeace, notifyCalls } from './peace.ts';

const NEWEST = RELEASE_LINES[RELEASE_LINES.length - 1] ?? 'v1.9';

/** The handler ends and comes back while the VM runs. */
export async function handlerRestart(scene: LauncherScene): Promise<CellResult> {
  const { handler } = await scene.runVm();
  await scene.stopHandler(handler);
  const next = await scene.startHandler();
  await scene.must(next, 'resync');
  await scene.untilDomain(next, 'Running');
  await scene.must(next, 'update');
  check(scene.starts === 1, `the domain was started ${scene.starts} times`);
  scene.domain.suspend();
  await scene.untilDomain(next, 'Paused');
  scene.domain.resume();
  await scene.untilDomain(next, 'Running');
  checkPeace(next);
  return PASS;
}

/** A VM that the old handler started is taken over by the newest release, and goes back to the old one. */
export async function upgradeInTheMiddle(scene: LauncherScene): Promise<CellResult> {
  const { handler: old } = await scene.runVm();
  checkPeace(old);
  await scene.stopHandler(old);

  const upgraded = await scene.startHandler(NEWEST);
  await scene.must(upgraded, 'resync');
  await scene.must(upgraded, 'update');
  await scene.must(upgraded, 'pause');
  await scene.untilDomain(upgraded, 'Paused', 'User');
  checkPeace(upgraded);
  await scene.stopHandler(upgraded);

  const again = await scene.startHandler();
  await scene.must(again, 'resync');
  await scene.untilDomain(again, 'Paused', 'User');
  await scene.must(again, 'update');
  await scene.must(again, 'unpause');
  await scene.untilDomain(again, 'Running');
  check(scene.starts === 1, `the domain was started ${scene.starts} times`);
  await scene.must(again, 'stop');
  checkPeace(again);
  return PASS;
}

/**
 * Events that the handler could not take arrive later, or are found by its periodic question; after a failure the
 * launcher begins anew with the version check (FM-2.1).
 */
export async function notifyLossAndResync(scene: LauncherScene): Promise<CellResult> {
  const { handler } = await scene.runVm();
  for (let round = 0; round < 2; round++) {
    const checks = notifyCalls(handler, 'Info').length;
    await handler.loseNotify();
    scene.domain.suspend();
    await scene.must(handler, 'resync');
    await scene.untilDomain(handler, 'Paused');
    await handler.restoreNotify();
    scene.domain.resume();
    await scene.untilDomain(handler, 'Running');
    check(notifyCalls(handler, 'Info').length > checks, 'the launcher went on without a version check');
  }
  await scene.must(handler, 'update');
  check(scene.starts === 1, `the domain was started ${scene.starts} times`);
  checkPeace(handler);
  return PASS;
}

/**
 * The libvirt daemon goes and comes back while the VM runs: what happened meanwhile is told once the launcher is
 * connected again, as MODIFIED, never as ERROR (FM-2.6).
 */
export async function libvirtRestart(scene: LauncherScene): Promise<CellResult> {
  const { handler } = await scene.runVm();
  const events = handler.events.length;
  await scene.daemon.crash();
  await scene.daemon.start();
  await scene.until('an event after the reconnection', () => handler.events.length > events);
  scene.domain.suspend();
  await scene.untilDomain(handler, 'Paused');
  scene.domain.resume();
  await scene.untilDomain(handler, 'Running');
  await scene.must(handler, 'update');
  check(scene.starts === 1, `the domain was started ${scene.starts} times`);
  checkPeace(handler);
  return PASS;
}
