import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { notifyV1 } from '@virtwire/shared-proto';
import type { CellResult } from '../../cell.ts';
import { dialGrpc } from '../../emulate/transport/grpc-client.ts';
import type { GrpcConnection } from '../../emulate/transport/grpc-client.ts';
import { POD_UID, VM } from '../../matrix/test-vmi.ts';
import type { HandlerScene } from '../handler-scene.ts';
import { check, PASS } from '../verdicts.ts';
import { callsOf, pauseByUser } from './running.ts';

const QUICK_RESYNC_MS = 300;
const CALL_LIMIT_MS = 5_000;

/** Events that are lost are made up for: by the question at a start, and by the periodic one. */
export async function notifyLossAndResync(scene: HandlerScene): Promise<CellResult> {
  const launcher = await scene.runVm();
  await scene.stopHandler();
  await pauseByUser(scene);
  await scene.startHandler(QUICK_RESYNC_MS);
  await scene.until('the state that was missed while no handler ran', () => scene.hasCondition('Paused'));
  const { shareDir } = scene.dirs.pod(POD_UID);
  rmSync(join(shareDir, 'domain-notify-pipe.sock'), { force: true });
  const asked = callsOf(launcher, 'GetDomain').length;
  launcher.crashGuest();
  await scene.until('the periodic question', () => callsOf(launcher, 'GetDomain').length > asked);
  await scene.untilPhase('Failed');
  check(launcher.state.process !== 'crashed', `the launcher crashed: ${launcher.state.crashReason ?? ''}`);
  return PASS;
}

interface BadEvent {
  readonly what: string;
  readonly bytes: Uint8Array;
}

function event(what: string, domain: unknown, eventType = 'MODIFIED'): BadEvent {
  const domainJSON = Buffer.from(typeof domain === 'string' ? domain : JSON.stringify(domain));
  return {
    what,
    bytes: notifyV1.DomainEventRequest.encode({ domainJSON, statusJSON: new Uint8Array(), eventType }).finish(),
  };
}

function badEvents(): readonly BadEvent[] {
  const ObjectMeta = VM;
  const Status = { Status: 'Running', Reason: 'Unknown', Interfaces: null, OSInfo: {}, FSFreezeStatus: {} };
  const Spec = { Name: `${VM.namespace}_${VM.name}`, Metadata: { KubeVirt: { UID: VM.uid } } };
  const devices = {
    Interfaces: [{ Type: 'ethernet', Alias: null, MAC: null }],
    Disks: [{ Device: 'disk', Alias: null }],
  };
  return [
    event('no JSON', '{"Spec":'),
    event('an array', '[]'),
    event('null', 'null'),
    event('no domain at all', ''),
    event('a type that no release sends', { ObjectMeta, Spec, Status }, 'EXPLODED'),
    event('null aliases', { ObjectMeta, Spec: { ...Spec, Devices: devices }, Status }),
    event('wrong types', { ObjectMeta, Spec: { ...Spec, Devices: 7, Memory: 'much' }, Status }),
    event('another UID', { ObjectMeta: { ...VM, uid: 'another' }, Spec, Status }),
    { what: 'bytes that are no message', bytes: Buffer.from([0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f, 1]) },
    { what: 'an unknown field', bytes: Buffer.from([0xfa, 0x3f, 0x02, 0x7b, 0x7d]) },
  ];
}

async function sendBadEvents(scene: HandlerScene, connection: GrpcConnection): Promise<void> {
  for (const { what, bytes } of badEvents()) {
    const answer = await connection.call('/kubevirt.notify.v1.Notify/HandleDomainEvent', bytes, CALL_LIMIT_MS);
    scene.note(`event with ${what}: code ${answer.code} ${answer.details}`);
    check(answer.code !== 4 && answer.code !== 14, `an event with ${what} broke the connection: ${answer.details}`);
    check(scene.vmi.status?.phase === 'Running', `an event with ${what} ended the VMI`);
  }
}

/** Failures and nonsense of the launcher are told, and do no harm. */
export async function badRequests(scene: HandlerScene): Promise<CellResult> {
  const fail: Record<string, string> = { SyncVirtualMachine: 'no disk' };
  await scene.startLauncher({ faults: { fail } });
  await scene.startHandler();
  scene.handOver();
  const synchronized = () => scene.vmi.status?.conditions?.find(({ type }) => type === 'Synchronized');
  await scene.until('the condition Synchronized', () => synchronized()?.status === 'False');
  const message = synchronized()?.message ?? '';
  check(message.includes('server error. command SyncVMI failed: "no disk"'), `the condition says: ${message}`);
  delete fail['SyncVirtualMachine'];
  await scene.untilPhase('Running');
  const pipe = join(scene.dirs.pod(POD_UID).shareDir, 'domain-notify-pipe.sock');
  using connection = await dialGrpc(pipe, { authority: 'localhost', userAgent: 'grpc-go/1.79.3' });
  await sendBadEvents(scene, connection);
  await pauseByUser(scene);
  await scene.until('good events after bad ones', () => scene.hasCondition('Paused'));
  return PASS;
}
