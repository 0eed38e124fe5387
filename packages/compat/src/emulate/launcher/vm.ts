import {
  type Domain,
  type DomainInterface,
  type DomainSpec,
  domainName,
  emptyDomainSpec,
  GONE_STATUS,
  isConditionTrue,
  type KubeVirtMetadata,
  type LifeCycle as DomainState,
  quantityValue,
  renderDomainJson,
  renderTime,
  type StateChangeReason,
  type Vmi,
} from '@virtwire/vm-model';

import type { LifeCycle, VmIdentity } from '../api.ts';
import type { LauncherFacts } from '../facts/line-facts.ts';
import type { Fields } from '../schema/release-schema.ts';
import {
  AGENT_CHANNEL,
  convertDisks,
  convertHostDevices,
  convertInterfaces,
  convertVmi,
  enableVcpus,
  maxVcpusOf,
  vcpusOf,
} from './domain-spec.ts';
import { GUEST_OS, guestInterfaces } from './guest.ts';
import { domainNotFound, ProcessCrash, Refusal } from './outcome.ts';

/** What a VM needs from the process that holds it. */
export interface VmDeps {
  readonly facts: LauncherFacts;
  readonly identity: VmIdentity;
  readonly lifeCycle: Required<LifeCycle>;
  /** Something happened that a launcher tells its handler. The document is made when the event is sent. */
  onEvent(type: 'ADDED' | 'MODIFIED'): void;
  onK8sEvent(reason: string, message: string): void;
  /** Runs something later, unless the process has ended by then. */
  after(delayMs: number, run: () => void): void;
  now(): number;
}

/** What libvirt knows of the domain. */
interface Defined {
  spec: DomainSpec;
  status: DomainState;
  reason: StateChangeReason;
}

const FINAL_PHASES: readonly string[] = ['Succeeded', 'Failed'];

/** Options of a sync that a launcher looks at. */
export interface SyncOptions {
  readonly disksInfo: Readonly<Record<string, Fields>>;
  readonly attachments: Readonly<Record<string, string>> | undefined;
  readonly expandDisks: boolean;
  readonly clusterExpandDisks: boolean;
}

/** The VM behind an emulated launcher: states, devices and metadata, without a hypervisor. */
export class Vm {
  readonly deps: VmDeps;
  metadata: KubeVirtMetadata = {};
  isAgentConnected = false;
  isFrozen = false;
  expandsDisks = false;
  #domain: Defined | undefined;
  #isGone = false;
  #isPausedByRequest = false;
  #panicCount = 0;
  /** Launchers keep what they were told last. */
  #disksInfo: Readonly<Record<string, Fields>> = {};

  constructor(deps: VmDeps) {
    this.deps = deps;
  }

  get name(): string {
    return domainName(this.deps.identity.namespace, this.deps.identity.name);
  }

  get domain(): Readonly<Defined> | undefined {
    return this.#domain;
  }

  /** @throws {Refusal} libvirt's error without a domain. */
  requireDomain(): Defined {
    if (this.#domain === undefined) throw domainNotFound(this.name);
    return this.#domain;
  }

  /** The newest line's document; GetDomain prints it without the UID. @source releases.json eras.getDomainStatusFill */
  document(isEvent: boolean): string {
    const { namespace, name, uid } = this.deps.identity;
    const isGone = this.#domain === undefined;
    const domain: Domain = {
      kind: 'Domain',
      apiVersion: '1.2.2',
      ObjectMeta: {
        name,
        namespace,
        ...(isEvent ? { uid } : {}),
        ...(isGone ? { deletionTimestamp: renderTime(this.deps.now()) } : {}),
      },
      Spec: {
        ...(this.#domain?.spec ?? emptyDomainSpec()),
        Metadata: { KubeVirt: isGone ? { UID: this.metadata.UID } : this.metadata },
      },
      Status: {
        ...(this.#domain === undefined ? GONE_STATUS : { Status: this.#domain.status, Reason: this.#domain.reason }),
        Interfaces: this.isAgentConnected ? guestInterfaces(this.#domain?.spec.Devices.Interfaces ?? []) : undefined,
        OSInfo: this.isAgentConnected ? GUEST_OS : {},
        FSFreezeStatus: { Status: isEvent && this.isFrozen ? 'frozen' : '' },
        PanicCount: this.#panicCount,
      },
    };
    return renderDomainJson(domain);
  }

  /** @source wire.md 6 SyncVirtualMachine */
  async sync(vmi: Vmi, options: SyncOptions): Promise<void> {
    if (Object.keys(options.disksInfo).length > 0) this.#disksInfo = options.disksInfo;
    this.#checkDisksInfo(vmi);
    const spec = this.#convert(vmi, options);
    this.expandsDisks = this.#readExpandDisks(options);
    if (this.#domain === undefined) this.define(vmi, spec);
    this.#setGracePeriod(vmi);
    const domain = this.requireDomain();
    if (domain.status === 'Shutoff' && !['Running', ...FINAL_PHASES].includes(vmi.status?.phase ?? '')) {
      await this.#start();
    } else if (domain.status === 'Paused' && !this.#isPausedByRequest && domain.reason !== 'Migration') {
      this.change('Running', 'Unknown');
    }
    if (domain.status === 'Running' || domain.status === 'Paused') this.#plug(vmi, options);
  }

  #convert(vmi: Vmi, options: SyncOptions): DomainSpec {
    try {
      return convertVmi(vmi, options);
    } catch (caught) {
      throw new Refusal(caught instanceof Error ? caught.message : String(caught), { cause: caught });
    }
  }

  /** @source releases.json eras.expandDisksFlags */
  #readExpandDisks({ expandDisks, clusterExpandDisks }: SyncOptions): boolean {
    switch (this.deps.facts.expandDisksSwitch.value) {
      case 'always':
        return true;
      case 'options':
        return expandDisks;
      case 'optionsOrClusterConfig':
        return clusterExpandDisks || expandDisks;
    }
  }

  #checkDisksInfo(vmi: Vmi): void {
    if (!this.deps.facts.needsDisksInfo.value) return;
    const missing = vmi.spec.volumes?.find(
      ({ name, containerDisk }) => containerDisk !== undefined && this.#disksInfo[name] === undefined,
    );
    if (missing !== undefined) throw new Refusal(`no disk info provided for volume ${missing.name}`);
  }

  define(vmi: Vmi, spec: DomainSpec): void {
    this.#domain = {
      spec: withPlaceholders(spec, this.deps.facts.interfacesAtDefine.value),
      status: 'Shutoff',
      reason: 'Unknown',
    };
    this.metadata = { ...this.metadata, UID: vmi.metadata.uid };
    this.#setGracePeriod(vmi);
    this.deps.onEvent('ADDED');
    // Defined anew without them before it starts.
    this.#domain.spec = spec;
  }

  /** Makes this launcher hold a domain that arrived by migration. */
  adopt(spec: DomainSpec): void {
    this.#domain = { spec, status: 'Paused', reason: 'StartingUp' };
    this.deps.onEvent('MODIFIED');
  }

  #setGracePeriod(vmi: Vmi): void {
    const seconds = vmi.spec.terminationGracePeriodSeconds ?? 30;
    this.metadata = {
      ...this.metadata,
      GracePeriod: { ...this.metadata.GracePeriod, DeletionGracePeriodSeconds: seconds },
    };
  }

  async #start(): Promise<void> {
    this.change('Paused', 'StartingUp');
    await new Promise<void>((resolve) => this.deps.after(this.deps.lifeCycle.startMs, resolve));
    if (this.#domain?.status !== 'Paused') return;
    this.change('Running', 'Unknown');
    this.deps.onEvent('MODIFIED');
    const { agentMs } = this.deps.lifeCycle;
    if (agentMs !== 'never') this.deps.after(agentMs, () => this.setAgent(true));
  }

  /** A change of state and its event. */
  change(status: DomainState, reason: StateChangeReason): void {
    if (this.#domain === undefined) return;
    this.#domain.status = status;
    this.#domain.reason = reason;
    if (status === 'Shutoff' || status === 'Crashed') this.isAgentConnected = false;
    this.deps.onEvent('MODIFIED');
  }

  #plug(vmi: Vmi, options: SyncOptions): void {
    const { Devices } = this.requireDomain().spec;
    const disks = convertDisks(vmi);
    const running = Devices.Interfaces ?? [];
    const { readsInterfaceAttachment } = this.deps.facts;
    const interfaces = readsInterfaceAttachment.value ? convertInterfaces(vmi, options, running) : running;
    const changes =
      countChanges(aliases(Devices.Disks), aliases(disks)) + countChanges(aliases(running), aliases(interfaces));
    this.requireDomain().spec = {
      ...this.requireDomain().spec,
      Devices: { ...Devices, Disks: disks, Interfaces: interfaces },
    };
    for (let i = 0; i < changes; i++) this.deps.onEvent('MODIFIED');
  }

  /** SR-IOV devices, plugged in the background. @source wire.md 6 HotplugHostDevices */
  plugHostDevices(vmi: Vmi): void {
    const { spec } = this.requireDomain();
    const wanted = convertHostDevices(vmi);
    const changes = countChanges(aliases(spec.Devices.HostDevices), aliases(wanted));
    this.requireDomain().spec = { ...spec, Devices: { ...spec.Devices, HostDevices: wanted } };
    for (let i = 0; i < changes; i++) this.deps.onEvent('MODIFIED');
  }

  pause(): void {
    this.#requireForPause();
    if (this.requireDomain().status === 'Running') this.change('Paused', 'User');
    this.#isPausedByRequest = true;
  }

  unpause(): void {
    this.#requireForPause();
    this.#isPausedByRequest = false;
    if (this.requireDomain().status === 'Paused') this.change('Running', 'Unknown');
  }

  #requireForPause(): void {
    if (this.#domain === undefined) throw new Refusal('Domain not found.');
  }

  freeze(): void {
    this.#requireAgent();
    if (this.metadata.Migration !== undefined && this.metadata.Migration.EndTimestamp === undefined) {
      throw new Refusal('failed to freeze VMI, VMI is currently during migration');
    }
    this.isFrozen = true;
  }

  unfreeze(): void {
    this.#requireAgent();
    this.isFrozen = false;
  }

  #requireAgent(): void {
    if (this.requireDomain().status !== 'Shutoff' && this.isAgentConnected) return;
    const text = 'Guest agent is not responding: QEMU guest agent is not connected';
    throw new Refusal(`LibvirtError(Code=86, Domain=10, Message='${text}')`);
  }

  softReboot(vmi: Vmi): void {
    this.requireDomain();
    const hasAgent = isConditionTrue(vmi.status?.conditions, 'AgentConnected');
    if (!hasAgent && this.requireDomain().spec.Features?.ACPI === undefined) {
      throw new Refusal('VMI neither have the agent connected nor the ACPI feature enabled');
    }
    this.deps.onEvent('MODIFIED');
  }

  reset(): void {
    this.requireDomain();
    this.deps.onEvent('MODIFIED');
  }

  /** Also the guest's own way to end. @source wire.md 6 ShutdownVirtualMachine */
  shutdown(): void {
    const { lifeCycle } = this.deps;
    if (this.#domain?.status !== 'Running' && this.#domain?.status !== 'Paused') return;
    const { GracePeriod } = this.metadata;
    if (GracePeriod?.DeletionTimestamp === undefined) {
      const DeletionTimestamp = renderTime(this.deps.now());
      this.metadata = { ...this.metadata, GracePeriod: { ...GracePeriod, DeletionTimestamp } };
      this.deps.onEvent('MODIFIED');
      if (lifeCycle.shutdownMs !== 'never') this.deps.after(lifeCycle.shutdownMs, () => this.powerOff());
    }
  }

  powerOff(): void {
    if (this.#domain === undefined || this.#domain.status === 'Shutoff') return;
    this.change('ShuttingDown', 'Unknown');
    this.deps.after(1, () => this.change('Shutoff', 'Shutdown'));
  }

  kill(): void {
    const running: readonly DomainState[] = ['Running', 'Paused', 'ShuttingDown'];
    if (this.#domain === undefined || !running.includes(this.#domain.status)) return;
    this.change('Shutoff', 'Destroyed');
  }

  /** @source wire.md 6 DeleteVirtualMachine */
  undefine(): void {
    if (this.#domain === undefined) return;
    if (this.#domain.status !== 'Shutoff' && this.#domain.status !== 'Crashed') {
      // libvirt makes a running domain transient and keeps it; its events go on.
      this.deps.onEvent('MODIFIED');
      return;
    }
    this.#domain = undefined;
    this.#isGone = true;
    this.isAgentConnected = false;
    this.deps.onEvent('MODIFIED');
  }

  get isGone(): boolean {
    return this.#isGone;
  }

  panic(): void {
    if (this.#domain === undefined) return;
    this.#panicCount++;
    this.change('Crashed', 'Panicked');
    this.deps.onK8sEvent('GuestPanicked', 'VM guest panicked');
  }

  failDisk(): void {
    const [disk] = this.#domain?.spec.Devices.Disks ?? [];
    this.change('Paused', 'IOError');
    this.deps.onK8sEvent('IOerror', `VM Paused due to IO error at the volume: ${disk?.Alias?.Name ?? ''}`);
  }

  setAgent(isConnected: boolean): void {
    if (this.#domain?.status !== 'Running' || this.isAgentConnected === isConnected) return;
    this.isAgentConnected = isConnected;
    const channels = this.#domain.spec.Devices.Channels?.map((channel) =>
      channel.Target?.Name === AGENT_CHANNEL
        ? { ...channel, Target: { ...channel.Target, State: isConnected ? 'connected' : 'disconnected' } }
        : channel,
    );
    const { spec } = this.#domain;
    this.#domain.spec = { ...spec, Devices: { ...spec.Devices, Channels: channels } };
    this.deps.onEvent('MODIFIED');
  }

  markForShutdown(): void {
    const { GracePeriod } = this.metadata;
    this.metadata = { ...this.metadata, GracePeriod: { ...GracePeriod, MarkedForGracefulShutdown: true } };
    if (this.#domain !== undefined) this.deps.onEvent('MODIFIED');
  }

  get vcpus(): number {
    return this.#domain?.spec.VCPUs?.VCPU?.filter(({ Enabled }) => Enabled === 'yes').length ?? 0;
  }

  setVcpus(vmi: Vmi): void {
    const { spec } = this.requireDomain();
    const wanted = vcpusOf(vmi);
    const max = Math.max(spec.VCPU?.CPUs ?? 0, 0);
    if (wanted > max) {
      const text = `requested vcpus is greater than max allowable vcpus for the live domain: ${wanted} > ${max}`;
      throw new Refusal(`failed to update vCPUs: virError(Code=8, Domain=10, Message='invalid argument: ${text}')`);
    }
    this.requireDomain().spec = { ...spec, VCPUs: enableVcpus(wanted, Math.max(max, maxVcpusOf(vmi))) };
  }

  /** @source wire.md 6 SyncVirtualMachineMemory, 11 */
  setMemory(vmi: Vmi): void {
    const { spec } = this.requireDomain();
    const { memory } = vmi.spec.domain;
    if (memory?.maxGuest === undefined && this.deps.facts.crashesWithoutMaxGuest.value) {
      throw new ProcessCrash('SyncVirtualMachineMemory without spec.domain.memory.maxGuest');
    }
    const trap = 'kubevirt.io/func-test-memory-hotplug-fail';
    if (vmi.metadata.annotations?.[trap] !== undefined) throw new Refusal(trap);
    const wanted = Number(quantityValue(memory?.guest) / 1024n);
    const atBoot = Number(quantityValue(vmi.status?.memory?.guestAtBoot ?? memory?.guest) / 1024n);
    const plugged = { Value: Math.max(wanted - atBoot, 0), Unit: 'KiB' };
    const device = {
      XMLName: { Local: 'memory' },
      Model: 'virtio-mem',
      Target: { Requested: plugged, Current: plugged, Node: '0', Block: { Value: 2_048, Unit: 'KiB' } },
      Alias: { Name: 'virtiomem0', UserDefined: false },
    };
    const CurrentMemory = { Value: Math.max(wanted, atBoot), Unit: 'KiB' };
    this.requireDomain().spec = { ...spec, CurrentMemory, Devices: { ...spec.Devices, Memory: device } };
    this.deps.onEvent('MODIFIED');
  }

  get memoryKiB(): number {
    return Number(this.#domain?.spec.CurrentMemory?.Value ?? 0);
  }

  /** @source wire.md 6 VirtualMachineMemoryDump */
  dumpMemory(path: string): void {
    this.requireDomain();
    const FileName = path.slice(path.lastIndexOf('/') + 1);
    if (this.metadata.MemoryDump?.FileName === FileName) return;
    const time = renderTime(this.deps.now());
    this.metadata = { ...this.metadata, MemoryDump: { FileName, StartTimestamp: time } };
    this.deps.onEvent('MODIFIED');
    this.deps.after(1, () => {
      const done = { FileName, StartTimestamp: time, EndTimestamp: renderTime(this.deps.now()), Completed: true };
      this.metadata = { ...this.metadata, MemoryDump: done };
      this.deps.onEvent('MODIFIED');
    });
  }
}

/** Interfaces that reserve PCI slots for hotplug. @source captures README Layout define-1.xml */
function withPlaceholders(spec: DomainSpec, total: number): DomainSpec {
  const Interfaces = spec.Devices.Interfaces ?? [];
  if (Interfaces.length === 0 || Interfaces.length >= total) return spec;
  const placeholders = Array.from({ length: total - Interfaces.length }, (_, i) => ({
    XMLName: { Local: 'interface' },
    Type: 'ethernet',
    MAC: { MAC: `52:54:00:00:00:0${i}` },
    Model: { Type: 'virtio-non-transitional' },
  }));
  return { ...spec, Devices: { ...spec.Devices, Interfaces: [...Interfaces, ...placeholders] } };
}

interface Aliased {
  readonly Alias?: DomainInterface['Alias'];
}

/** Names of devices. */
export function aliases(devices: readonly Aliased[] | undefined): readonly string[] {
  return (devices ?? []).map(({ Alias }) => Alias?.Name ?? '');
}

function countChanges(before: readonly string[], after: readonly string[]): number {
  return after.filter((name) => !before.includes(name)).length + before.filter((name) => !after.includes(name)).length;
}
