import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Vmi } from '@virtwire/vm-model';
import type { CellResult } from '../../cell.ts';
import type { EmulatedLauncher, RecordedCall } from '../../emulate/api.ts';
import { factsOf } from '../../emulate/lines/lines.ts';
import type { Patch } from '../../emulate/lines/lines.ts';
import { POD_UID, VM } from '../../matrix/test-vmi.ts';
import type { ReleaseLine } from '../../release-line.ts';
import type { HandlerScene } from '../handler-scene.ts';
import { check, difference, PASS } from '../verdicts.ts';

/** gRPC's code of an RPC that the peer lacks. */
export const UNIMPLEMENTED = 12;

/** Calls of one RPC that a launcher got. */
export function callsOf({ calls }: EmulatedLauncher, rpc: string): readonly RecordedCall[] {
  return calls.filter((call) => call.channel === 'cmd' && call.rpc === rpc);
}

/** Every event of the launcher was taken, and the launcher lives. */
export function checkPeace(launcher: EmulatedLauncher): void {
  const { process, crashReason } = launcher.state;
  check(process !== 'crashed', `the launcher crashed: ${crashReason ?? ''}`);
  const refused = launcher.events.find((event) => event.outcome === 'refused' || event.outcome === 'lost');
  check(refused === undefined, `event ${refused?.type} ${refused?.status} was ${refused?.outcome}: ${refused?.error}`);
  // A call that is not implemented tells the handler how old the launcher is.
  const failed = launcher.calls.find(({ channel, code }) => channel === 'cmd' && code !== 0 && code !== UNIMPLEMENTED);
  check(failed === undefined, `${failed?.rpc} was answered with code ${failed?.code}: ${failed?.details}`);
}

/** Options that every sync carries, by field number. @source KubeVirt wire.md 5 */
const SYNC_OPTIONS: Readonly<Record<number, string>> = { 1: 'VirtualMachineSMBios', 4: 'topology', 7: 'clusterConfig' };

/** Deadlines that a call carries, in seconds. @source KubeVirt releases.json eras.rpcTimeoutsSeconds */
const DEADLINES_S: Readonly<Record<string, number>> = { Info: 5, SyncVirtualMachine: 20, GetDomain: 5 };

function checkDeadlines({ calls }: EmulatedLauncher): void {
  for (const { channel, rpc, timeoutMs = Infinity } of calls) {
    const limitMs = (DEADLINES_S[rpc] ?? Infinity) * 1_000;
    if (channel !== 'cmd' || limitMs === Infinity) continue;
    check(timeoutMs <= limitMs && timeoutMs > limitMs / 2, `${rpc} came with a deadline of ${timeoutMs} ms`);
  }
}

/** Where the switch of the display for EFI guests is dropped by releases that do not know it, or the whole message. */
const BOCHS_DISPLAY = ['options.clusterConfig.3', 'options.7'];

function checkSync({ request, droppedFields }: RecordedCall): void {
  const options = request['options'] as Readonly<Record<string, unknown>> | undefined;
  check(request['vmi'] !== undefined, 'SyncVirtualMachine came without the message vmi');
  check(options !== undefined, 'SyncVirtualMachine came without the message options');
  for (const [number, name] of Object.entries(SYNC_OPTIONS)) {
    const isThere = options[name] !== undefined || droppedFields.includes(`options.${number}`);
    check(isThere, `SyncVirtualMachine came without options.${name}`);
  }
  const cluster = options['clusterConfig'] as Readonly<Record<string, unknown>> | undefined;
  const isTold =
    cluster?.['BochsDisplayForEFIGuests'] === true || BOCHS_DISPLAY.some((path) => droppedFields.includes(path));
  check(isTold, `SyncVirtualMachine came with clusterConfig ${JSON.stringify(cluster ?? {})}`);
  const outer = droppedFields.find((path) => !path.startsWith('options.'));
  check(outer === undefined, `SyncVirtualMachine holds field ${outer ?? ''}, which no release knows`);
}

function addInterface(vmi: Vmi): void {
  vmi.spec.domain.devices.interfaces = [{ name: 'default', masquerade: {} }];
  vmi.spec.networks = [{ name: 'default', pod: {} }];
}

function checkAttachment(line: ReleaseLine, patch: Patch, { request, droppedFields }: RecordedCall): void {
  const options = request['options'] as { readonly interfaceDomainAttachment?: unknown } | undefined;
  if (!factsOf(line, patch).launcher.readsInterfaceAttachment.value) {
    check(droppedFields.includes('options.8'), 'the attachment of the interface was not sent');
    return;
  }
  const attachments = JSON.stringify(options?.interfaceDomainAttachment ?? {});
  check(attachments === '{"default":"tap"}', `the attachments of the interfaces were ${attachments}`);
}

/** Handlers of every release find launchers by these files. @source KubeVirt wire.md 1 Ghost records */
function checkRecord({ dirs }: HandlerScene): void {
  const file = join(dirs.privateDir, 'ghost-records', VM.uid);
  const record = JSON.parse(readFileSync(file, 'utf8')) as Readonly<Record<string, unknown>>;
  const { namespace, name, uid } = VM;
  const socketFile = join(dirs.pod(POD_UID).socketsDir, 'launcher-sock');
  const expected: Readonly<Record<string, string>> = { namespace, name, uid, socketFile };
  for (const [key, value] of Object.entries(expected)) {
    check(record[key] === value, `${key} in the ghost record is ${JSON.stringify(record[key])}`);
  }
}

/** From the hand-over to Running, with what the launcher has to be told. */
export async function firstStart(scene: HandlerScene, patch: Patch = 'last'): Promise<CellResult> {
  const launcher = await scene.runVm({ patch }, addInterface);
  const [first] = launcher.calls.filter((call) => call.channel === 'cmd');
  check(first?.rpc === 'Info', `the first call was ${first?.rpc}, not Info`);
  check(first.authority === 'localhost', `the authority was ${first.authority}`);
  const [sync] = callsOf(launcher, 'SyncVirtualMachine');
  check(sync !== undefined, 'SyncVirtualMachine was never called');
  checkSync(sync);
  checkAttachment(scene.line, patch, sync);
  checkDeadlines(launcher);
  checkRecord(scene);
  check(launcher.state.interfaces.includes('default'), 'the domain has no interface');
  check(launcher.state.expandsDisks, 'the launcher was not told to let disks grow');
  await launcher.waitFor('the events of the start', (one) => one.events.every(({ outcome }) => outcome !== 'pending'));
  check(launcher.events.filter(({ type }) => type === 'ADDED').length <= 1, 'the domain was defined twice');
  check(
    !scene.handler.events.some(({ type }) => type === 'Warning'),
    'a warning was told about a start that went well',
  );
  checkPeace(launcher);
  return PASS;
}

/** Pauses the VM for the user, as the REST server does. */
export async function pauseByUser(scene: HandlerScene): Promise<void> {
  const client = await scene.connect();
  const paused = await client.pauseVirtualMachine(scene.request());
  check(paused.ok, `pausing failed: ${paused.ok ? '' : paused.error.message}`);
}

/** Lets the VM go on for the user. */
export async function unpauseByUser(scene: HandlerScene): Promise<void> {
  const client = await scene.connect();
  const unpaused = await client.unpauseVirtualMachine(scene.request());
  check(unpaused.ok, `unpausing failed: ${unpaused.ok ? '' : unpaused.error.message}`);
}

/** What the domain says ends up in the VMI: Kubernetes events, condition, and the phase after a panic. */
export async function status(scene: HandlerScene): Promise<CellResult> {
  const launcher = await scene.runVm();
  launcher.reconnectLibvirt();
  launcher.failDisk();
  await scene.until('the event IOerror', () => scene.handler.events.some(({ reason }) => reason === 'IOerror'));
  await pauseByUser(scene);
  await scene.until('condition Paused', () => scene.hasCondition('Paused'));
  check(scene.vmi.status?.phase === 'Running', 'the VMI left Running');
  launcher.panicGuest();
  await scene.untilPhase('Failed');
  checkPeace(launcher);
  return PASS;
}

/** A change of the VMI reaches the launcher, and nothing is started again. */
export async function update(scene: HandlerScene): Promise<CellResult> {
  const launcher = await scene.runVm();
  const before = callsOf(launcher, 'SyncVirtualMachine').length;
  scene.change((vmi) => {
    vmi.metadata.annotations = { ...vmi.metadata.annotations, 'kubevirt.io/test': 'changed' };
  });
  await scene.until('a sync with the change', () => {
    const sync = callsOf(launcher, 'SyncVirtualMachine').slice(before).at(-1);
    return JSON.stringify(sync?.request['vmi'] ?? '').includes('kubevirt.io/test');
  });
  check(launcher.state.domain?.status === 'Running', 'the domain does not run any more');
  check(launcher.events.filter(({ type }) => type === 'ADDED').length <= 1, 'the domain was defined twice');
  checkPeace(launcher);
  return PASS;
}

/** Pause and unpause through the library, seen in the status through events. */
export async function pause(scene: HandlerScene): Promise<CellResult> {
  const launcher = await scene.runVm();
  await pauseByUser(scene);
  await scene.until('condition Paused', () => scene.hasCondition('Paused'));
  await unpauseByUser(scene);
  await scene.until('no condition Paused', () => !scene.hasCondition('Paused'));
  check(scene.vmi.status?.phase === 'Running', 'the VMI left Running');
  checkPeace(launcher);
  return PASS;
}

/** The guest agent comes and goes. */
export async function guestAgent(scene: HandlerScene): Promise<CellResult> {
  const launcher = await scene.runVm();
  check(callsOf(launcher, 'GetGuestInfo').length === 0, 'guest info was asked for without an agent');
  launcher.connectAgent();
  await scene.until('condition AgentConnected', () => scene.hasCondition('AgentConnected'));
  await scene.until('a question for guest info', () => callsOf(launcher, 'GetGuestInfo').length > 0);
  const client = await scene.connect();
  for (const rpc of ['GetGuestInfo', 'GetUsers', 'GetFilesystems'] as const) {
    const answer = await client.call(rpc);
    check(answer.ok, `${rpc} failed: ${answer.ok ? '' : answer.error.message}`);
  }
  launcher.disconnectAgent();
  await scene.until('no condition AgentConnected', () => !scene.hasCondition('AgentConnected'));
  checkPeace(launcher);
  return PASS;
}

/** Adds an ACPI table to a domain in the shape of a release. */
function addAcpiTable(domainJson: string, shape: 'object' | 'array'): string {
  if (domainJson === '') return domainJson;
  const domain = JSON.parse(domainJson) as { Spec: { OS: Record<string, unknown> } };
  const table = { Type: 'slic', Path: '/var/run/kubevirt-private/secret/slic/slic.bin' };
  domain.Spec.OS['ACPI'] = { Table: shape === 'array' ? [table] : table };
  return JSON.stringify(domain);
}

/** A VM with an ACPI table, which releases print as one object or as a list. */
export async function acpiTables(scene: HandlerScene): Promise<CellResult> {
  const shape = factsOf(scene.line).shared.acpiTable.value;
  if (shape === 'none') return difference('launchers before v1.2 know no ACPI tables');
  const launcher = await scene.runVm({ tamper: { domain: (json) => addAcpiTable(json, shape) } });
  await pauseByUser(scene);
  await scene.until('condition Paused', () => scene.hasCondition('Paused'));
  await scene.stopHandler();
  await scene.startHandler();
  await unpauseByUser(scene);
  await scene.until('no condition Paused', () => !scene.hasCondition('Paused'));
  checkPeace(launcher);
  return PASS;
}
