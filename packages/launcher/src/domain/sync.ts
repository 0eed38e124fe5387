import { domainName } from '@virtwire/vm-model';
import type { DomainSpec, Vmi } from '@virtwire/vm-model';
import { startSpan } from '@virtwire/telemetry';
import type { Logger } from '@virtwire/telemetry';
import { LauncherError } from '../errors.ts';
import type { MetadataCache } from '../metadata/cache.ts';
import { decideStartMode, decideSync } from './decide-sync.ts';
import type { DomainDefiner } from './define.ts';
import { findDomain } from './find-domain.ts';
import { aliasesOf } from './hotplug-ports.ts';
import type { DomainRef, LibvirtPort } from './libvirt-port.ts';
import type { Mutex } from './mutex.ts';
import type { PausedSet } from './paused-set.ts';
import { listPendingChanges } from './pending-changes.ts';

const DEFAULT_GRACE_PERIOD_SECONDS = 30;
const PROBE_PAUSE_ANNOTATION = 'kubevirt.io/pause-guest-agent-probes';

/** Turns a VMI into a domain that can start. `O` are the options of the request. */
export interface VmiPreparation<O> {
  /** The domain that the VMI asks for. */
  convert(vmi: Vmi, options: O | undefined): Promise<DomainSpec>;
  /** Makes everything that the domain refers to, once, before it is defined; returns it completed. */
  preStart(vmi: Vmi, spec: DomainSpec, options: O | undefined, log: Logger): Promise<DomainSpec>;
  /** Makes what depends on addresses that libvirt gave to devices: the cloud-init image. */
  beforeStart(vmi: Vmi, defined: DomainSpec, log: Logger): Promise<void>;
}

/** What a sync needs. */
export interface SyncDeps<O> {
  readonly libvirt: Pick<LibvirtPort, 'lookupDomainByName' | 'getState' | 'getXml' | 'create' | 'resume'>;
  readonly preparation: VmiPreparation<O>;
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
  /** Target device name to alias, as of the last sync. */
  aliases(): ReadonlyMap<string, string>;
  /** The VMI says that agent probes shall not count now. */
  areProbesPaused(): boolean;
  /** How often a sync was asked for, and how the last one failed, for the last words of a launcher without a domain. */
  journal(): { readonly calls: number; readonly lastError: string | undefined };
}

function gracePeriodOf(vmi: Vmi): number {
  return Number(vmi.spec.terminationGracePeriodSeconds ?? DEFAULT_GRACE_PERIOD_SECONDS);
}

/** Creates the sync of one VM. `@source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/manager.go:1380` */
export function createDomainSync<O>(deps: SyncDeps<O>): DomainSync<O> {
  const { libvirt, preparation, metadata, paused } = deps;
  let aliases: ReadonlyMap<string, string> = new Map();
  let areProbesPaused = false;
  let calls = 0;
  let lastError: string | undefined;

  async function define(vmi: Vmi, spec: DomainSpec, options: O | undefined, log: Logger): Promise<DomainRef> {
    let prepared: DomainSpec;
    try {
      log.info('Executing PreStartHook on VMI pod environment');
      prepared = await preparation.preStart(vmi, spec, options, log);
    } catch (caught) {
      log.error({ reason: caught }, 'pre start setup for VirtualMachineInstance failed.');
      throw caught;
    }
    const span = startSpan(log, 'define domain');
    const ref = await deps.definer.define(vmi, prepared, log);
    span.end();
    metadata.uid.set(vmi.metadata.uid);
    metadata.gracePeriod.set({ ...metadata.gracePeriod.load(), DeletionGracePeriodSeconds: gracePeriodOf(vmi) });
    log.info('Domain defined.');
    return ref;
  }

  async function start(vmi: Vmi, ref: DomainRef, log: Logger): Promise<void> {
    await preparation.beforeStart(vmi, deps.parseSpec(await libvirt.getXml(ref, 0)), log);
    const { flags, rememberPause } = decideStartMode(vmi);
    const span = startSpan(log, 'start QEMU');
    try {
      await libvirt.create(ref, flags);
    } catch (caught) {
      span.fail(caught);
      log.error({ reason: caught }, `Failed to start VirtualMachineInstance with flags ${flags}.`);
      throw caught;
    }
    span.end();
    log.info('Domain started.');
    if (rememberPause) paused.add(vmi.metadata.uid);
  }

  async function resume(ref: DomainRef, log: Logger): Promise<void> {
    try {
      await libvirt.resume(ref);
      log.info('Domain unpaused.');
    } catch (caught) {
      log.error({ reason: caught }, 'unpausing the VirtualMachineInstance failed.');
      throw caught;
    }
  }

  async function bringUp(vmi: Vmi, ref: DomainRef, log: Logger): Promise<void> {
    const { state } = await libvirt.getState(ref);
    const isPausedByRequest = paused.has(vmi.metadata.uid);
    const due = decideSync({ state, phase: vmi.status?.phase, isPausedByRequest });
    if (due === 'start') await start(vmi, ref, log);
    if (due === 'resume') await resume(ref, log);
  }

  async function update(vmi: Vmi, ref: DomainRef, wanted: DomainSpec, log: Logger): Promise<void> {
    const live = deps.parseSpec(await libvirt.getXml(ref, 0));
    const changes = listPendingChanges(vmi, live, wanted, deps.hotplugDir);
    if (changes.length > 0) {
      const text = `changing devices of a running VM is not supported yet: ${changes.join(', ')}`;
      throw new LauncherError('NotSupportedYet', text);
    }
    aliases = aliasesOf(live);
    const seconds = gracePeriodOf(vmi);
    const isChanged = metadata.gracePeriod.load()?.DeletionGracePeriodSeconds !== seconds;
    metadata.gracePeriod.update((grace) => ({ ...grace, DeletionGracePeriodSeconds: seconds }));
    if (isChanged) log.info(`Set new termination grace period: ${seconds}`);
    areProbesPaused = /^(1|t|T|true|TRUE|True)$/.test(vmi.metadata.annotations?.[PROBE_PAUSE_ANNOTATION] ?? '');
  }

  async function convert(vmi: Vmi, options: O | undefined, log: Logger): Promise<DomainSpec> {
    try {
      return await preparation.convert(vmi, options);
    } catch (caught) {
      log.error({ reason: caught }, 'failed to generate libvirt domain from VMI spec');
      throw caught;
    }
  }

  async function syncOnce(vmi: Vmi, options: O | undefined, log: Logger): Promise<void> {
    const wanted = await convert(vmi, options, log);
    const found = await findDomain(libvirt, domainName(vmi.metadata.namespace, vmi.metadata.name));
    const ref = found ?? (await define(vmi, wanted, options, log));
    await bringUp(vmi, ref, log);
    await update(vmi, ref, wanted, log);
  }

  return {
    async sync(vmi, options, log) {
      calls++;
      try {
        await deps.mutex.run(() => syncOnce(vmi, options, log));
        lastError = undefined;
      } catch (caught) {
        lastError = caught instanceof Error ? caught.message : String(caught);
        throw caught;
      }
    },
    aliases: () => aliases,
    areProbesPaused: () => areProbesPaused,
    journal: () => ({ calls, lastError }),
  };
}
