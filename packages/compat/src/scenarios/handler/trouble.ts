import { join } from 'node:path';
import { notifyV1 } from '@virtwire/shared-proto';
import type { CellResult } from '../../cell.ts';
import { dialGrpc } from '../../emulate/transport/grpc-client.ts';
import type { GrpcConnection, RawAnswer } from '../../emulate/transport/grpc-client.ts';
import { POD_UID, VM } from '../../matrix/test-vmi.ts';
import type { HandlerScene } from '../handler-scene.ts';
import { check, PASS } from '../verdicts.ts';
import { callsOf, pauseByUser, unpauseByUser } from './running.ts';

const QUICK_RESYNC_MS = 300;
const CALL_LIMIT_MS = 5_000;
/** gRPC's code for bytes that are no message. */
const INTERNAL = 13;

/** Events that are lost are made up for: by the question at a start, and by the periodic one. */
export async function notifyLossAndResync(scene: HandlerScene): Promise<CellResult> {
  const launcher = await scene.runVm();
  await scene.stopHandler();
  await pauseByUser(scene);
  await scene.startHandler(QUICK_RESYNC_MS);
  await scene.until('the state that was missed while no handler ran', () => scene.hasCondition('Paused'));
  launcher.cutNotify(true);
  const asked = callsOf(launcher, 'GetDomain').length;
  await unpauseByUser(scene);
  await scene.until('what the periodic question tells', () => !scene.hasCondition('Paused'));
  check(callsOf(launcher, 'GetDomain').length > asked, 'the handler knew without asking');
  launcher.cutNotify(false);
  await pauseByUser(scene);
  await scene.until('events once the way is mended', () => scene.hasCondition('Paused'));
  launcher.cutNotify(true);
  launcher.crashGuest();
  await scene.untilPhase('Failed');
  check(launcher.state.process !== 'crashed', `the launcher crashed: ${launcher.state.crashReason ?? ''}`);
  return PASS;
}

/** What a handler does with an event: takes it, refuses it with words, or finds that its bytes are no message. */
type Fate = 'taken' | 'refused' | 'noMessage';

/** A launcher that answers nothing, or cannot tell its domain, is not one that is gone (FM-2.7). */
export async function launcherHangs(scene: HandlerScene): Promise<CellResult> {
  const fail: Record<string, string> = {};
  const launcher = await scene.runVm({ faults: { fail } });
  const stays = (): Promise<void> =>
    scene.stays('phase Running', () => scene.vmi.status?.phase === 'Running', 2 * QUICK_RESYNC_MS);
  fail['GetDomain'] = 'libvirt does not answer';
  await scene.stopHandler();
  const asked = callsOf(launcher, 'GetDomain').length;
  await scene.startHandler(QUICK_RESYNC_MS);
  await scene.until('a question at the start', () => callsOf(launcher, 'GetDomain').length > asked);
  await stays();
  delete fail['GetDomain'];
  await scene.stopHandler();
  launcher.hang();
  await scene.startHandler(QUICK_RESYNC_MS);
  scene.change((vmi) => {
    vmi.metadata.annotations = { ...vmi.metadata.annotations, 'kubevirt.io/test': 'changed' };
  });
  await stays();
  launcher.unhang();
  await scene.until('a sync with the change', () => {
    const sync = callsOf(launcher, 'SyncVirtualMachine').at(-1);
    return JSON.stringify(sync?.request['vmi'] ?? '').includes('kubevirt.io/test');
  });
  for (const rpc of ['ShutdownVirtualMachine', 'KillVirtualMachine', 'DeleteVirtualMachine']) {
    check(callsOf(launcher, rpc).length === 0, `${rpc} was sent to a launcher that only hung`);
  }
  check(launcher.state.domain?.status === 'Running', 'the VM was ended because its launcher hung');
  check(scene.vmi.status?.phase === 'Running', 'the VMI left Running');
  return PASS;
}

/** A launcher that died is the end of its VM, whatever its release has left behind (FM-3.6). */
export async function launcherDies(scene: HandlerScene): Promise<CellResult> {
  const launcher = await scene.runVm();
  launcher.crashProcess('killed for the test');
  await scene.untilPhase('Failed');
  return PASS;
}

interface BadEvent {
  readonly rpc: 'HandleDomainEvent' | 'HandleK8sEvent';
  readonly what: string;
  readonly fate: Fate;
  readonly bytes: Uint8Array;
}

const asJson = (value: unknown): Buffer => Buffer.from(typeof value === 'string' ? value : JSON.stringify(value));

function event(what: string, fate: Fate, domain: unknown, eventType = 'MODIFIED'): BadEvent {
  const fields = { domainJSON: asJson(domain), statusJSON: new Uint8Array(), eventType };
  return { rpc: 'HandleDomainEvent', what, fate, bytes: notifyV1.DomainEventRequest.encode(fields).finish() };
}

function bytesOnly(what: string, fate: Fate, hex: string): BadEvent {
  return { rpc: 'HandleDomainEvent', what, fate, bytes: Buffer.from(hex, 'hex') };
}

function k8sEvent(what: string, fate: Fate, json: unknown): BadEvent {
  const bytes = notifyV1.K8sEventRequest.encode({ eventJSON: asJson(json) }).finish();
  return { rpc: 'HandleK8sEvent', what, fate, bytes };
}

/** Reason of a Kubernetes event that must never reach the cluster. */
const FORGED = 'Forged';

/** @source KubeVirt wire.md 7; failure-modes.md FM-1.4, FM-2.3 and P4 */
function badEvents(): readonly BadEvent[] {
  const ObjectMeta = VM;
  const Status = { Status: 'Running', Reason: 'Unknown', Interfaces: null, OSInfo: {}, FSFreezeStatus: {} };
  const Spec = { Name: `${VM.namespace}_${VM.name}`, Metadata: { KubeVirt: { UID: VM.uid } } };
  const devices = {
    Interfaces: [{ Type: 'ethernet', Alias: null, MAC: null }],
    Disks: [{ Device: 'disk', Alias: null }],
  };
  const Failed = { ...Status, Status: 'Crashed', Reason: 'Panicked' };
  const statusJSON = asJson({ metadata: {}, status: 'Failure', message: 'Libvirt reconnect, domain ns1_vm1' });
  const error = { domainJSON: new Uint8Array(), statusJSON, eventType: 'ERROR' };
  const by = (involvedObject: object): object => ({ involvedObject, type: 'Warning', reason: FORGED, message: 'no' });
  return [
    event('half a JSON', 'refused', '{"Spec":'),
    event('an array', 'refused', '[]'),
    event('a number', 'refused', '7'),
    event('wrong types', 'refused', { ObjectMeta, Spec: { ...Spec, Devices: 7, Memory: 'much' }, Status }),
    event('another UID', 'refused', { ObjectMeta: { ...VM, uid: 'another' }, Spec: OTHER_SPEC, Status: Failed }),
    event('the domain of another VM', 'refused', {
      ObjectMeta: { ...VM, name: 'vm2' },
      Spec: { ...Spec, Name: `${VM.namespace}_vm2` },
      Status: Failed,
    }),
    event('no domain at all', 'taken', ''),
    event('a type that no release sends', 'taken', { ObjectMeta, Spec, Status: Failed }, 'EXPLODED'),
    event('null aliases', 'taken', { ObjectMeta, Spec: { ...Spec, Devices: devices }, Status }),
    bytesOnly('bytes that are no message', 'noMessage', '0affffffff0f01'),
    bytesOnly('an unknown field', 'taken', 'fa3f027b7d'),
    {
      ...{ rpc: 'HandleDomainEvent', what: 'an error of libvirt', fate: 'taken' },
      bytes: notifyV1.DomainEventRequest.encode(error).finish(),
    },
    k8sEvent('half a JSON', 'refused', '{"reason":'),
    k8sEvent('nothing', 'refused', ''),
    k8sEvent('another UID', 'refused', by({ ...VM, uid: 'another' })),
    k8sEvent('another VM', 'refused', by({ ...VM, name: 'vm2' })),
  ];
}

const OTHER_SPEC = { Name: `${VM.namespace}_${VM.name}`, Metadata: { KubeVirt: { UID: 'another' } } };

function fateOf({ code, bytes }: RawAnswer): { readonly fate: Fate | 'lost'; readonly words: string } {
  if (code === INTERNAL) return { fate: 'noMessage', words: '' };
  if (code !== 0) return { fate: 'lost', words: '' };
  const { success, message } = notifyV1.Response.decode(bytes);
  return { fate: success ? 'taken' : 'refused', words: message };
}

/** A launcher in Go that gets a gRPC error says the same again for twenty seconds and falls behind (FM-1.4). */
async function sendBadEvents(scene: HandlerScene, connection: GrpcConnection): Promise<void> {
  for (const { rpc, what, fate, bytes } of badEvents()) {
    const answer = await connection.call(`/kubevirt.notify.v1.Notify/${rpc}`, bytes, CALL_LIMIT_MS);
    const { fate: got, words } = fateOf(answer);
    scene.note(`${rpc} with ${what}: ${got}, code ${answer.code} ${answer.details}${words}`);
    check(got === fate, `${rpc} with ${what} was ${got} (code ${answer.code} ${answer.details}${words}), not ${fate}`);
    check(got !== 'refused' || words !== '', `${rpc} with ${what} was refused without a word`);
    check(scene.vmi.status?.phase === 'Running', `${rpc} with ${what} ended the VMI`);
  }
  const direct = join(scene.dirs.shareDir, 'domain-notify.sock');
  using unknown = await dialGrpc(direct, { authority: 'localhost', userAgent: 'grpc-go/1.79.3' });
  const stranger = k8sEvent('another UID', 'refused', {
    ...{ involvedObject: { ...VM, uid: 'another' }, type: 'Warning', reason: FORGED, message: 'no' },
  });
  const refusal = await unknown.call('/kubevirt.notify.v1.Notify/HandleK8sEvent', stranger.bytes, CALL_LIMIT_MS);
  check(fateOf(refusal).words === 'VMI not found', `an event about another UID was ${JSON.stringify(fateOf(refusal))}`);
  const forged = scene.handler.events.some(({ reason }) => reason === FORGED);
  check(!forged, 'an event about another VM reached the cluster');
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
