import type { CellResult } from '../../cell.ts';
import type { EmulatedLauncher, RecordedCall } from '../../emulate/api.ts';
import { factsOf } from '../../emulate/lines/lines.ts';
import type { HandlerScene } from '../handler-scene.ts';
import { check, difference, PASS } from '../verdicts.ts';

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

const UNIMPLEMENTED = 12;

/** Options that every sync carries, by field number. @source KubeVirt wire.md 5 */
const SYNC_OPTIONS: Readonly<Record<number, string>> = { 1: 'VirtualMachineSMBios', 4: 'topology', 7: 'clusterConfig' };

function checkSync({ request, droppedFields }: RecordedCall): void {
  const options = request['options'] as Readonly<Record<string, unknown>> | undefined;
  check(request['vmi'] !== undefined, 'SyncVirtualMachine came without the message vmi');
  check(options !== undefined, 'SyncVirtualMachine came without the message options');
  for (const [number, name] of Object.entries(SYNC_OPTIONS)) {
    const isThere = options[name] !== undefined || droppedFields.includes(`options.${number}`);
    check(isThere, `SyncVirtualMachine came without options.${name}`);
  }
  const outer = droppedFields.find((path) => !path.startsWith('options.'));
  check(outer === undefined, `SyncVirtualMachine holds field ${outer ?? ''}, which no release knows`);
}

/** From the hand-over to Running, with what the launcher has to be told. */
export async function firstStart(scene: HandlerScene): Promise<CellResult> {
  const launcher = await scene.runVm();
  const [first] = launcher.calls.filter((call) => call.channel === 'cmd');
  check(first?.rpc === 'Info', `the first call was ${first?.rpc}, not Info`);
  check(first.authority === 'localhost', `the authority was ${first.authority}`);
  const [sync] = callsOf(launcher, 'SyncVirtualMachine');
  check(sync !== undefined, 'SyncVirtualMachine was never called');
  checkSync(sync);
  await launcher.waitFor('the events of the start', (one) => one.events.every(({ outcome }) => outcome !== 'pending'));
  check(launcher.events.filter(({ type }) => type === 'ADDED').length <= 1, 'the domain was defined twice');
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
