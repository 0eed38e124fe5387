import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { GuestBehaviour } from '@virtwire/libvirt/fake';
import type { CellResult } from '../../cell.ts';
import type { ActionOutcome, EmulatedHandler } from '../../emulate/api.ts';
import { factsOf } from '../../emulate/lines/lines.ts';
import type { Patch } from '../../emulate/lines/lines.ts';
import { VM } from '../../matrix/test-vmi.ts';
import type { ReleaseLine } from '../../release-line.ts';
import type { LauncherScene } from '../launcher-scene.ts';
import { failuresOf } from '../launcher-scene.ts';
import { check, difference, failBy, PASS } from '../verdicts.ts';
import { checkPeace, notifyCalls, sentDomains } from './peace.ts';
import { AGENT_WITH_STATS, checkStats, checkStatsWithoutAgent, COLLECTOR_FLAG, dirtyMemory } from './vm-stats.ts';

/** The domain as the handler knows it now. */
function domainOf(scene: LauncherScene, handler: EmulatedHandler): string {
  return JSON.stringify(handler.domain(scene.vmi.metadata) ?? {});
}

function addInterface({ vmi }: LauncherScene): void {
  vmi.spec.domain.devices.interfaces = [{ name: 'default', masquerade: {} }];
  vmi.spec.networks = [{ name: 'default', pod: {} }];
}

/** The addresses of the guest's interfaces in libvirt. */
function tapsOf(scene: LauncherScene): readonly string[] {
  return [...scene.domain.describe(false).matchAll(/<target dev=["'](tap[^"']*)["']/g)].map(([, tap = '']) => tap);
}

/** From the first call of the handler to Running, with a network that old handlers say nothing about. */
export async function firstStart(scene: LauncherScene, patch?: Patch): Promise<CellResult> {
  addInterface(scene);
  const { handler } = await scene.runVm({}, patch);
  check(scene.starts === 1, `the domain was started ${scene.starts} times`);
  check(tapsOf(scene).includes('tap0'), `the interface has no tap: ${tapsOf(scene).join()}`);
  const types = notifyCalls(handler, 'HandleDomainEvent').map(({ request }) => request['eventType']);
  check(types[0] === 'ADDED', `the first event was ${String(types[0])}, not ADDED`);
  check(types.includes('MODIFIED'), 'no event MODIFIED told that the domain runs');
  const [info] = handler.calls.filter(({ channel }) => channel === 'notify');
  check(info?.rpc === 'Info', `the launcher began with ${info?.rpc}, not with Info`);
  const known = domainOf(scene, handler);
  for (const text of [scene.vmi.metadata.uid, '"default"', '"root"', '"DeletionGracePeriodSeconds":30']) {
    check(known.includes(text), `the handler's domain lacks ${text}`);
  }
  checkPeace(handler);
  return PASS;
}

/** libvirt's code for a disk whose host has no room left. */
const NO_SPACE = 2;

/** Kubernetes events of one reason, as they came over the wire; handlers record them on the VM that they name. */
function checkK8sEvents(handler: EmulatedHandler, reason: string, message: string): void {
  const told = notifyCalls(handler, 'HandleK8sEvent').map(({ request }) => request['eventJSON'] as K8sEvent);
  const events = told.filter((event) => event.reason === reason);
  check(events.length > 0, `no event ${reason} came`);
  const about = { kind: 'VirtualMachineInstance', apiVersion: 'kubevirt.io/v1', ...VM };
  for (const event of events) {
    check(event.message === message, `the event ${reason} says: ${String(event.message)}`);
    check(event.type === 'Warning', `the event ${reason} is of type ${String(event.type)}`);
    for (const [key, value] of Object.entries(about)) {
      const found = event.involvedObject?.[key];
      check(found === value, `the event ${reason} is about the ${key} ${String(found)}`);
    }
  }
}

interface K8sEvent {
  readonly type?: unknown;
  readonly reason?: unknown;
  readonly message?: unknown;
  readonly involvedObject?: Readonly<Record<string, unknown>>;
}

/** The state of the domain arrives by events and by questions, and both say the same; failures of disks are told. */
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
  scene.domain.diskErrors.set('vda', NO_SPACE);
  scene.domain.ioError({ srcPath: '/var/lib/vms/root.img', devAlias: 'ua-root', reason: 'enospc' });
  await scene.untilDomain(handler, 'Paused', 'IOError');
  await scene.until('the event IOerror at the handler', () =>
    handler.events.some(({ kind, type, accepted }) => kind === 'k8s' && type === 'IOerror' && accepted),
  );
  checkK8sEvents(handler, 'IOerror', 'VM Paused due to not enough space on volume: root');
  scene.domain.resume();
  await scene.untilDomain(handler, 'Running');
  scene.domain.panic();
  await scene.untilDomain(handler, 'Crashed');
  checkK8sEvents(handler, 'GuestPanicked', 'GuestPanicked (details unavailable)');
  checkPeace(handler);
  return PASS;
}

/** Syncs of a VM that runs start nothing again, and what changed in the VMI arrives. */
export async function update(scene: LauncherScene): Promise<CellResult> {
  const { handler } = await scene.runVm();
  scene.vmi.metadata.annotations = { ...scene.vmi.metadata.annotations, 'kubevirt.io/test': 'changed' };
  for (let round = 0; round < 3; round++) await scene.must(handler, 'update');
  await scene.untilDomain(handler, 'Running');
  const defined = scene.daemon.callsOf('DOMAIN_DEFINE_XML_FLAGS').length;
  scene.vmi.spec.terminationGracePeriodSeconds = 45;
  await scene.must(handler, 'update');
  await scene.must(handler, 'resync');
  const hasArrived = (): boolean => domainOf(scene, handler).includes('"DeletionGracePeriodSeconds":45');
  await scene.until('the new grace period at the handler', hasArrived);
  check(scene.starts === 1, `the domain was started ${scene.starts} times`);
  check(scene.daemon.callsOf('DOMAIN_DEFINE_XML_FLAGS').length === defined, 'a sync defined the domain again');
  checkPeace(handler);
  return PASS;
}

/** The user pauses and unpauses; a sync in between resumes nothing. */
export async function pause(scene: LauncherScene): Promise<CellResult> {
  const { handler } = await scene.runVm();
  await scene.must(handler, 'pause');
  await scene.untilDomain(handler, 'Paused', 'User');
  await scene.must(handler, 'update');
  check(scene.daemon.callsOf('DOMAIN_RESUME').length === 0, 'a sync resumed a VM that the user paused');
  await scene.must(handler, 'pause');
  check(scene.daemon.callsOf('DOMAIN_SUSPEND').length === 1, 'a VM that is paused was paused again');
  await scene.must(handler, 'unpause');
  await scene.untilDomain(handler, 'Running');
  checkPeace(handler);
  return PASS;
}

function hasAgent(domain: Readonly<Record<string, unknown>> | undefined): boolean {
  return JSON.stringify(domain ?? {}).includes('"State":"connected"');
}

/** Answers of an action's calls, as text. */
function answersOf({ calls }: ActionOutcome): string {
  return JSON.stringify(calls.map(({ response }) => response ?? {}));
}

/** The agent comes, is asked, and goes. */
export async function guestAgent(scene: LauncherScene): Promise<CellResult> {
  const { handler } = await scene.runVm();
  scene.domain.connectAgent();
  await scene.until('the agent at the handler', () => hasAgent(handler.domain(scene.vmi.metadata)));
  const isKnown = (): boolean => domainOf(scene, handler).includes('"Name":"Debian GNU/Linux"');
  await scene.until("the guest's system at the handler", isKnown);
  const told = answersOf(await scene.must(handler, 'guestQueries'));
  for (const text of [
    '"prettyName":"Debian GNU/Linux 12 (bookworm)"',
    '"hostname":"guest"',
    '"guest-fsfreeze-freeze"',
  ]) {
    check(told.includes(text), `the guest info lacks ${text}: ${told}`);
  }
  await scene.must(handler, 'update');
  scene.domain.disconnectAgent();
  await scene.until('no agent at the handler', () => !hasAgent(handler.domain(scene.vmi.metadata)));
  checkPeace(handler);
  return PASS;
}

/** A guest whose agent freezes its file systems. */
function freezableGuest(): { readonly guest: GuestBehaviour; readonly isFrozen: () => boolean } {
  let isFrozen = false;
  const set = (value: boolean): number => {
    isFrozen = value;
    return 1;
  };
  return {
    isFrozen: () => isFrozen,
    guest: {
      agent: {
        ...AGENT_WITH_STATS,
        'guest-fsfreeze-status': () => (isFrozen ? 'frozen' : 'thawed'),
        'guest-fsfreeze-freeze': () => set(true),
        'guest-fsfreeze-thaw': () => set(false),
      },
    },
  };
}

/** Metrics, all statistics, freeze, thaw, soft reboot and reset, as far as the handler's release has them. */
export async function requests(scene: LauncherScene): Promise<CellResult> {
  const { guest, isFrozen } = freezableGuest();
  await scene.startLauncher(guest, [COLLECTOR_FLAG]);
  const handler = await scene.startVm();
  dirtyMemory(scene);
  await checkStatsWithoutAgent(scene, handler);
  scene.domain.connectAgent();
  await scene.until('the agent at the handler', () => hasAgent(handler.domain(scene.vmi.metadata)));
  const act = async (action: 'metrics' | 'freeze' | 'unfreeze' | 'softReboot' | 'reset'): Promise<ActionOutcome> => {
    const outcome = await scene.act(handler, action);
    // An action that the release does not have makes no calls.
    if (outcome.calls.length > 0 && !outcome.ok) failBy(failuresOf(outcome), action);
    return outcome;
  };
  const { calls } = await act('metrics');
  const stats = calls.find(({ rpc }) => rpc === 'GetDomainStats')?.response?.['domainStats'] as
    Readonly<Record<string, unknown>> | undefined;
  const hasTime = JSON.stringify(stats ?? {}).includes('"TimeSet":true');
  check(stats !== undefined && hasTime, `the statistics hold no processor time: ${JSON.stringify(stats)}`);
  await checkStats(scene, handler, stats);
  await act('freeze');
  check(isFrozen(), 'the file systems were not frozen');
  await act('unfreeze');
  check(!isFrozen(), 'the file systems were not thawed');
  await act('softReboot');
  const reset = await act('reset');
  const resets = scene.daemon.callsOf('DOMAIN_RESET').length;
  check(resets === (reset.calls.some(({ rpc }) => rpc === 'ResetVirtualMachine') ? 1 : 0), `${resets} resets`);
  await scene.untilDomain(handler, 'Running');
  check(scene.starts === 1, `the domain was started ${scene.starts} times`);
  checkPeace(handler);
  return PASS;
}

const SLIC_BYTES = 64;

function addAcpiTable(scene: LauncherScene): void {
  const { vmi } = scene;
  vmi.spec.domain.firmware = { ...vmi.spec.domain.firmware, acpi: { slicNameRef: 'slic' } };
  vmi.spec.volumes = [...(vmi.spec.volumes ?? []), { name: 'slic', secret: { secretName: 'slic' } }];
  const secret = join(scene.dirs.root, 'l/private/secret/slic');
  mkdirSync(secret, { recursive: true });
  writeFileSync(join(secret, 'slic.bin'), new Uint8Array(SLIC_BYTES));
}

const IMAGE_BYTES = 65_536;

/** A container disk, which handlers before v1.6 describe in their first sync. */
function addContainerDisk(scene: LauncherScene): void {
  const { spec } = scene.vmi;
  const { devices } = spec.domain;
  devices.disks = [...(devices.disks ?? []), { name: 'image', disk: { bus: 'virtio' } }];
  const volumes = spec.volumes ?? [];
  spec.volumes = [...volumes, { name: 'image', containerDisk: { image: 'example/disk:1' } }];
  const images = join(scene.dirs.root, 'l/container-disks');
  mkdirSync(images, { recursive: true });
  // Named after the place of the volume in the VMI.
  writeFileSync(join(images, `disk_${volumes.length}.img`), new Uint8Array(IMAGE_BYTES));
}

/** Lines whose handlers read one table as an object and look like those of v1.6, until they describe a container disk. */
const LOOK_NEWER: readonly ReleaseLine[] = ['v1.4', 'v1.5'];

/** A VM with an ACPI table, which releases read as one object or as a list. */
export async function acpiTables(scene: LauncherScene): Promise<CellResult> {
  const shape = factsOf(scene.line).shared.acpiTable.value;
  if (shape === 'none') return difference('handlers before v1.2 know no ACPI tables');
  addAcpiTable(scene);
  const looksNewer = LOOK_NEWER.includes(scene.line);
  if (looksNewer) addContainerDisk(scene);
  const { handler } = await scene.runVm();
  const sent = sentDomains(handler).at(-1) as { readonly Spec?: { readonly OS?: { readonly ACPI?: object } } };
  check(sent.Spec?.OS?.ACPI !== undefined, 'the domain has no ACPI table');
  await scene.must(handler, 'update');
  await scene.must(handler, 'resync');
  await scene.must(handler, 'pause');
  await scene.untilDomain(handler, 'Paused', 'User');
  checkPeace(handler);
  const reason = 'a VM without container disk shows as Unknown: its handler cannot be told from one of v1.6';
  return looksNewer ? difference(reason) : PASS;
}
