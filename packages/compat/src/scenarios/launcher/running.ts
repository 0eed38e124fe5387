import type { CellResult } from '../../cell.ts';
import type { EmulatedHandler } from '../../emulate/api.ts';
import type { LauncherScene } from '../launcher-scene.ts';
import { failuresOf } from '../launcher-scene.ts';
import { check, notBuiltOrThrow, PASS } from '../verdicts.ts';

/** The handler lives, and could read every event. */
export function checkPeace(handler: EmulatedHandler): void {
  const { process, crashReason } = handler.state;
  check(process !== 'crashed', `the handler crashed: ${crashReason ?? ''}`);
  const refused = handler.events.find((event) => !event.accepted);
  check(refused === undefined, `the handler refused event ${refused?.type}: ${refused?.error ?? ''}`);
}

/** From the first call of the handler to Running. */
export async function firstStart(scene: LauncherScene): Promise<CellResult> {
  const { handler } = await scene.runVm();
  check(scene.starts === 1, `the domain was started ${scene.starts} times`);
  check(handler.events.length > 0, 'the launcher sent no event');
  checkPeace(handler);
  return PASS;
}

/** The state of the domain arrives by events and by questions, and both say the same. */
export async function status(scene: LauncherScene): Promise<CellResult> {
  const { handler } = await scene.runVm();
  await scene.must(handler, 'resync');
  await scene.untilDomain(handler, 'Running');
  scene.domain.suspend();
  await scene.untilDomain(handler, 'Paused');
  await scene.must(handler, 'resync');
  await scene.untilDomain(handler, 'Paused');
  scene.domain.resume();
  await scene.untilDomain(handler, 'Running');
  scene.domain.panic();
  await scene.untilDomain(handler, 'Crashed');
  checkPeace(handler);
  return PASS;
}

/** Syncs of a VM that runs change nothing. */
export async function update(scene: LauncherScene): Promise<CellResult> {
  const { handler } = await scene.runVm();
  scene.vmi.metadata.annotations = { ...scene.vmi.metadata.annotations, 'kubevirt.io/test': 'changed' };
  for (let round = 0; round < 3; round++) await scene.must(handler, 'update');
  check(scene.starts === 1, `the domain was started ${scene.starts} times`);
  await scene.untilDomain(handler, 'Running');
  checkPeace(handler);
  return PASS;
}

export async function pause(scene: LauncherScene): Promise<CellResult> {
  const { handler } = await scene.runVm();
  await scene.must(handler, 'pause');
  await scene.untilDomain(handler, 'Paused', 'User');
  await scene.must(handler, 'update');
  check(scene.daemon.callsOf('DOMAIN_RESUME').length === 0, 'a sync resumed a VM that the user paused');
  await scene.must(handler, 'unpause');
  await scene.untilDomain(handler, 'Running');
  checkPeace(handler);
  return PASS;
}

function hasAgent(domain: Readonly<Record<string, unknown>> | undefined): boolean {
  return JSON.stringify(domain ?? {}).includes('"State":"connected"');
}

export async function guestAgent(scene: LauncherScene): Promise<CellResult> {
  const { handler } = await scene.runVm();
  scene.domain.connectAgent();
  await scene.until('the agent at the handler', () => hasAgent(handler.domain(scene.vmi.metadata)));
  await scene.must(handler, 'guestQueries');
  await scene.must(handler, 'update');
  scene.domain.disconnectAgent();
  await scene.until('no agent at the handler', () => !hasAgent(handler.domain(scene.vmi.metadata)));
  checkPeace(handler);
  return PASS;
}

/** Metrics, freeze, thaw, soft reboot and reset, as far as the handler's release has them. */
export async function requests(scene: LauncherScene): Promise<CellResult> {
  const { handler } = await scene.runVm();
  scene.domain.connectAgent();
  await scene.until('the agent at the handler', () => hasAgent(handler.domain(scene.vmi.metadata)));
  const missing: CellResult[] = [];
  for (const action of ['metrics', 'freeze', 'unfreeze', 'softReboot', 'reset'] as const) {
    const outcome = await scene.act(handler, action);
    // An action that the release does not have makes no calls.
    if (outcome.calls.length > 0 && !outcome.ok) missing.push(notBuiltOrThrow(failuresOf(outcome)));
  }
  checkPeace(handler);
  const parts = missing.flatMap((result) => (result.kind === 'notBuilt' ? [result.missingPart] : []));
  return parts.length === 0 ? PASS : { kind: 'notBuilt', missingPart: parts.join(', ') };
}
