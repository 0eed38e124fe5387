import { domainName } from '@virtwire/vm-model';
import type { DomainHostDevice, DomainSpec, Vmi } from '@virtwire/vm-model';
import { startSpan } from '@virtwire/telemetry';
import type { Logger } from '@virtwire/telemetry';
import { LauncherError, textOf } from '../errors.ts';
import type { IommuDescriptor } from '../iommu/iommu-descriptor.ts';
import type { MetadataCache } from '../metadata/cache.ts';
import { decideStartMode, decideSync } from './decide-sync.ts';
import type { DomainDefiner } from './define.ts';
import { isDumping } from './dumping.ts';
import { findDomain } from './find-domain.ts';
import { gracePeriodOf } from './grace-period.ts';
import { aliasesOf } from './hotplug-ports.ts';
import type { DomainRef, LibvirtPort } from './libvirt-port.ts';
import type { Mutex } from './mutex.ts';
import type { PausedSet } from './paused-set.ts';
import type { DevicePreparation, DeviceUpdaterDeps, DiskSizes } from './update-devices.ts';
import { updateDevices } from './update-devices.ts';

/** What Go's strconv.ParseBool takes for true. */
const GO_TRUE = /^(1|t|T|true|TRUE|True)$/;
/** Group of descriptors that the domain's IOMMUFD names. */
const IOMMU_GROUP = 'iommu';
const PROBE_PAUSE_ANNOTATION = 'kubevirt.io/pause-guest-agent-probes';

/** Turns a VMI into a domain that can start. `O` are the options of the request. */
export interface VmiPreparation<O> {
  /** For devices that come, change and go while the VM runs. */
  readonly devices: DevicePreparation<O>;
  /** Virtual functions for the SR-IOV interfaces that the pod has by now. */
  hostDevices(vmi: Vmi): Promise<readonly DomainHostDevice[]>;
  /** CPUs of the launcher's cgroup. */
  podCpuSet(): Promise<readonly number[]>;
  /** The domain that the VMI asks for. */
  convert(vmi: Vmi, options: O | undefined): Promise<DomainSpec>;
  /** Makes everything that the domain refers to, once, before it is defined; returns it completed. */
  preStart(vmi: Vmi, spec: DomainSpec, options: O | undefined, log: Logger): Promise<DomainSpec>;
  /** Makes what depends on addresses that libvirt gave to devices: the cloud-init image. */
  beforeStart(vmi: Vmi, defined: DomainSpec, log: Logger): Promise<void>;
}

/** What a sync needs. */
export interface SyncDeps<O> {
  readonly libvirt: Pick<
    LibvirtPort,
    'lookupDomainByName' | 'getState' | 'getXml' | 'associateDescriptor' | 'create' | 'resume'
  > &
    DeviceUpdaterDeps<O>['libvirt'];
  readonly preparation: VmiPreparation<O>;
  /** Without it, domains have no IOMMUFD. */
  readonly iommu: Pick<IommuDescriptor, 'copy'> | undefined;
  readonly definer: DomainDefiner;
  readonly metadata: MetadataCache;
  readonly paused: PausedSet;
  readonly mutex: Mutex;
  readonly parseSpec: (xml: string) => DomainSpec;
  readonly hotplugDir: string;
}

/** Keeps the domain as its VMI asks for. */
export interface DomainSync<O> {
  /** Defines, starts or resumes the domain, as is due. Calls run one after the other; repeated ones only read. */
  sync(vmi: Vmi, options: O | undefined, log: Logger): Promise<void>;
  /** Target device name to alias, as of the last sync or plug. */
  aliases(): ReadonlyMap<string, string>;
  /** Takes note of a domain whose devices have changed outside of a sync. */
  noteDevices(live: DomainSpec): void;
  /** The VMI says that agent probes shall not count now. */
  areProbesPaused(): boolean;
  /** How often a sync was asked for, and how the last one failed, for the last words of a launcher without a domain. */
  journal(): { readonly calls: number; readonly lastError: string | undefined };
}

/** Creates the sync of one VM. */
export function createDomainSync<O>(deps: SyncDeps<O>): DomainSync<O> {
  return new LibvirtDomainSync(deps);
}

/** @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/manager.go:1380 */
class LibvirtDomainSync<O> implements DomainSync<O> {
  readonly #deps: SyncDeps<O>;
  #aliases: ReadonlyMap<string, string> = new Map();
  #areProbesPaused = false;
  readonly #sizes: DiskSizes = new Map();
  #calls = 0;
  #lastError: string | undefined;
  /** One that broke off leaves a domain with places for devices that are none; KubeVirt would try to start it for ever. */
  #definition: 'whole' | 'brokenOff' | 'unfit' = 'whole';

  constructor(deps: SyncDeps<O>) {
    this.#deps = deps;
  }

  aliases(): ReadonlyMap<string, string> {
    return this.#aliases;
  }

  noteDevices(live: DomainSpec): void {
    this.#aliases = aliasesOf(live);
  }

  areProbesPaused(): boolean {
    return this.#areProbesPaused;
  }

  journal(): { readonly calls: number; readonly lastError: string | undefined } {
    return { calls: this.#calls, lastError: this.#lastError };
  }

  async sync(vmi: Vmi, options: O | undefined, log: Logger): Promise<void> {
    this.#calls++;
    try {
      await this.#deps.mutex.run(() => this.#syncOnce(vmi, options, log));
      this.#lastError = undefined;
    } catch (caught) {
      this.#lastError = textOf(caught);
      throw caught;
    }
  }

  async #syncOnce(vmi: Vmi, options: O | undefined, log: Logger): Promise<void> {
    const wanted = await this.#convert(vmi, options, log);
    const found = await findDomain(this.#deps.libvirt, domainName(vmi.metadata.namespace, vmi.metadata.name));
    const isFit = found !== undefined && this.#definition !== 'unfit';
    const ref = isFit ? found : await this.#define(vmi, wanted, options, log);
    await this.#bringUp(vmi, ref, log);
    await this.#update(vmi, ref, wanted, options, log);
  }

  async #convert(vmi: Vmi, options: O | undefined, log: Logger): Promise<DomainSpec> {
    try {
      return await this.#deps.preparation.convert(vmi, options);
    } catch (caught) {
      log.error({ reason: caught }, 'failed to generate libvirt domain from VMI spec');
      throw caught;
    }
  }

  async #define(vmi: Vmi, spec: DomainSpec, options: O | undefined, log: Logger): Promise<DomainRef> {
    const { metadata, definer } = this.#deps;
    const prepared = await this.#prepare(vmi, spec, options, log);
    this.#definition = 'brokenOff';
    const ref = await spanned(log, 'define domain', definer.define(vmi, prepared, log));
    this.#definition = 'whole';
    metadata.gracePeriod.set({ ...metadata.gracePeriod.load(), DeletionGracePeriodSeconds: gracePeriodOf(vmi) });
    log.info('Domain defined.');
    return ref;
  }

  async #prepare(vmi: Vmi, spec: DomainSpec, options: O | undefined, log: Logger): Promise<DomainSpec> {
    log.info('Executing PreStartHook on VMI pod environment');
    try {
      return await spanned(log, 'prepare disks and network', this.#deps.preparation.preStart(vmi, spec, options, log));
    } catch (caught) {
      log.error({ reason: caught }, 'pre start setup for VirtualMachineInstance failed.');
      throw caught;
    }
  }

  async #bringUp(vmi: Vmi, ref: DomainRef, log: Logger): Promise<void> {
    const { libvirt, paused, metadata } = this.#deps;
    const { state, reason } = await libvirt.getState(ref);
    const isPausedByRequest = paused.has(vmi.metadata.uid);
    const phase = vmi.status?.phase;
    const due = decideSync({ state, reason, phase, isPausedByRequest, isDumping: isDumping(metadata) });
    if (due === 'start') await this.#start(vmi, ref, log);
    if (due === 'resume') await this.#resume(ref, log);
  }

  async #start(vmi: Vmi, ref: DomainRef, log: Logger): Promise<void> {
    const { libvirt, preparation, parseSpec, paused } = this.#deps;
    await this.#passIommuDescriptor(ref);
    await preparation.beforeStart(vmi, parseSpec(await libvirt.getXml(ref, 0)), log);
    const { flags, rememberPause } = decideStartMode(vmi);
    try {
      await spanned(log, 'start QEMU', libvirt.create(ref, flags));
    } catch (caught) {
      log.error({ reason: caught }, `Failed to start VirtualMachineInstance with flags ${flags}.`);
      if (this.#definition === 'brokenOff') this.#definition = 'unfit';
      throw caught;
    }
    log.info('Domain started.');
    if (rememberPause) paused.add(vmi.metadata.uid);
  }

  /** libvirt may have been started anew since, so each start passes it. */
  async #passIommuDescriptor(ref: DomainRef): Promise<void> {
    using copy = this.#deps.iommu?.copy();
    if (copy === undefined) return;
    try {
      await this.#deps.libvirt.associateDescriptor(ref, IOMMU_GROUP, copy.fd);
    } catch (caught) {
      throw LauncherError.from(caught, 'IommuFailed', 'failed to associate IOMMUFD FD with domain: ');
    }
  }

  async #resume(ref: DomainRef, log: Logger): Promise<void> {
    try {
      await this.#deps.libvirt.resume(ref);
      log.info('Domain unpaused.');
    } catch (caught) {
      log.error({ reason: caught }, 'unpausing the VirtualMachineInstance failed.');
      throw caught;
    }
  }

  async #update(vmi: Vmi, domain: DomainRef, wanted: DomainSpec, options: O | undefined, log: Logger): Promise<void> {
    const { libvirt, preparation, parseSpec, hotplugDir } = this.#deps;
    const live = parseSpec(await libvirt.getXml(domain, 0));
    const update = { vmi, domain, live, wanted, options, log };
    const isChanged = await updateDevices(
      { libvirt, devices: preparation.devices, hotplugDir, sizes: this.#sizes },
      update,
    );
    this.#aliases = isChanged ? await this.#readAliases(domain, log) : aliasesOf(live);
    this.#updateGracePeriod(gracePeriodOf(vmi), log);
    this.#areProbesPaused = GO_TRUE.test(vmi.metadata.annotations?.[PROBE_PAUSE_ANNOTATION] ?? '');
  }

  /** The names are for statistics only: without an answer the old ones stay. */
  async #readAliases(domain: DomainRef, log: Logger): Promise<ReadonlyMap<string, string>> {
    const { libvirt, parseSpec } = this.#deps;
    try {
      return aliasesOf(parseSpec(await libvirt.getXml(domain, 0)));
    } catch (caught) {
      log.warn({ reason: caught }, 'failed to refresh device alias map');
      return this.#aliases;
    }
  }

  #updateGracePeriod(seconds: number, log: Logger): void {
    const { gracePeriod } = this.#deps.metadata;
    const isChanged = gracePeriod.load()?.DeletionGracePeriodSeconds !== seconds;
    gracePeriod.update((grace) => ({ ...grace, DeletionGracePeriodSeconds: seconds }));
    if (isChanged) log.info(`Set new termination grace period: ${seconds}`);
  }
}

async function spanned<T>(log: Logger, what: string, work: Promise<T>): Promise<T> {
  const span = startSpan(log, what);
  try {
    const result = await work;
    span.end();
    return result;
  } catch (caught) {
    span.fail(caught);
    throw caught;
  }
}
