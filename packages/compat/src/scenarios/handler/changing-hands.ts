import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { notifyV1 } from '@virtwire/shared-proto';
import type { CellResult } from '../../cell.ts';
import type { EmulatedLauncher } from '../../emulate/api.ts';
import { dialGrpc } from '../../emulate/transport/grpc-client.ts';
import { POD_UID, VM } from '../../matrix/test-vmi.ts';
import type { HandlerScene } from '../handler-scene.ts';
import { failuresOf } from '../launcher-scene.ts';
import { check, PASS } from '../verdicts.ts';
import { callsOf, checkPeace, pauseByUser, unpauseByUser } from './running.ts';

const CALL_LIMIT_MS = 5_000;
/** How long an event that is believed needs to show. */
const LATE_EFFECT_MS = 150;

function checkNeverRestarted(launcher: EmulatedLauncher): void {
  check(launcher.events.filter(({ type }) => type === 'ADDED').length <= 1, 'the VM was started again');
  check(launcher.state.domain?.status === 'Running', `the domain is ${launcher.state.domain?.status ?? 'gone'}`);
}

/**
 * The first event of a start, as it comes when its launcher could not send it before: launchers of every release send
 * what happened, not what is.
 */
async function sendLateEvent(scene: HandlerScene): Promise<void> {
  const { uid, namespace, name } = VM;
  const domain = {
    ObjectMeta: VM,
    Spec: { Name: `${namespace}_${name}`, Metadata: { KubeVirt: { UID: uid } } },
    Status: { Status: 'Shutoff', Reason: 'Unknown', OSInfo: {}, FSFreezeStatus: {} },
  };
  const domainJSON = Buffer.from(JSON.stringify(domain));
  const fields = { domainJSON, statusJSON: new Uint8Array(), eventType: 'ADDED' };
  const pipe = join(scene.dirs.pod(POD_UID).shareDir, 'domain-notify-pipe.sock');
  await scene.until('the notify pipe after the restart', () => existsSync(pipe));
  using connection = await dialGrpc(pipe, { authority: 'localhost', userAgent: 'grpc-go/1.79.3' });
  const bytes = notifyV1.DomainEventRequest.encode(fields).finish();
  const answer = await connection.call('/kubevirt.notify.v1.Notify/HandleDomainEvent', bytes, CALL_LIMIT_MS);
  check(answer.code === 0, `a late event was answered with code ${answer.code}: ${answer.details}`);
}

/** The handler is replaced while the launcher works on the start, and again while the VM runs. */
export async function handlerRestart(scene: HandlerScene): Promise<CellResult> {
  const launcher = await scene.startLauncher({ lifeCycle: { startMs: 120 } });
  await scene.startHandler();
  scene.handOver();
  await scene.until('the begin of the start', () => launcher.state.domain !== undefined);
  check(launcher.state.domain?.status !== 'Running', 'the domain ran before the handler was replaced');
  await scene.stopHandler();
  await scene.startHandler();
  await scene.untilPhase('Running');
  await sendLateEvent(scene);
  await scene.stays('phase Running', () => scene.vmi.status?.phase === 'Running', LATE_EFFECT_MS);
  await scene.stopHandler();
  const asked = callsOf(launcher, 'GetDomain').length;
  await scene.startHandler();
  await scene.until('GetDomain after the restart', () => callsOf(launcher, 'GetDomain').length > asked);
  checkNeverRestarted(launcher);
  await pauseByUser(scene);
  await scene.until('events after the restart', () => scene.hasCondition('Paused'));
  check(scene.vmi.status?.phase === 'Running', 'the VMI left Running');
  for (const rpc of ['ShutdownVirtualMachine', 'KillVirtualMachine', 'DeleteVirtualMachine']) {
    check(callsOf(launcher, rpc).length === 0, `${rpc} was sent over a restart`);
  }
  check(launcher.state.process === 'running', `the launcher ${launcher.state.process}`);
  return PASS;
}

/** A VM that the old handler started is taken over by the new one, and goes back to the old one. */
export async function upgradeInTheMiddle(scene: HandlerScene): Promise<CellResult> {
  const launcher = await scene.startLauncher();
  const old = await scene.startOldHandler(scene.line);
  scene.handOver();
  const asObject = (): Readonly<Record<string, unknown>> => scene.vmi as unknown as Readonly<Record<string, unknown>>;
  const started = await old.run('start', asObject(), POD_UID);
  check(started.ok, `the old handler could not start the VM: ${failuresOf(started)}`);
  await launcher.waitFor('Running', (one) => one.state.domain?.status === 'Running');
  await old[Symbol.asyncDispose]();

  const calls = launcher.calls.length;
  await scene.startHandler();
  await scene.untilPhase('Running');
  await scene.until('a call of the new handler', () => launcher.calls.length > calls);
  await pauseByUser(scene);
  await scene.until('condition Paused', () => scene.hasCondition('Paused'));
  await unpauseByUser(scene);
  await scene.until('no condition Paused', () => !scene.hasCondition('Paused'));
  checkNeverRestarted(launcher);
  await scene.stopHandler();

  await using again = await scene.startOldHandler(scene.line);
  const downgraded = await again.run('resync', asObject(), POD_UID);
  check(downgraded.ok, `the old handler does not find the VM: ${failuresOf(downgraded)}`);
  const updated = await again.run('update', asObject(), POD_UID);
  check(updated.ok, `the old handler cannot go on: ${failuresOf(updated)}`);
  checkNeverRestarted(launcher);
  checkPeace(launcher);
  const stopped = await again.run('stop', asObject(), POD_UID);
  check(stopped.ok, `the old handler cannot stop the VM: ${failuresOf(stopped)}`);
  return PASS;
}
