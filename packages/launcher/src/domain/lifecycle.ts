import { domainName, renderTime } from '@virtwire/vm-model';
import type { Vmi } from '@virtwire/vm-model';
import type { Logger } from '@virtwire/telemetry';
import type { Clock } from '../config/clock.ts';
import { LauncherError } from '../errors.ts';
import type { MetadataCache } from '../metadata/cache.ts';
import { findDomain } from './find-domain.ts';
import type { GuestTimeSync } from './guest-time.ts';
import type { DomainRef, LibvirtPort } from './libvirt-port.ts';
import { isNoDomain } from './libvirt-port.ts';
import type { Mutex } from './mutex.ts';
import type { PausedSet } from './paused-set.ts';
import { DOMAIN_STATE } from './state.ts';

/** The part of a VMI that names its domain. */
export type VmiName = Pick<Vmi, 'metadata'>;

/** What the operations need. */
export interface LifecycleDeps {
  readonly libvirt: Pick<
    LibvirtPort,
    'lookupDomainByName' | 'getState' | 'suspend' | 'resume' | 'shutdown' | 'destroy' | 'undefine'
  >;
  readonly metadata: MetadataCache;
  readonly paused: PausedSet;
  readonly guestTime: GuestTimeSync;
  /** The lock that every change of the domain holds. */
  readonly mutex: Mutex;
  readonly clock: Clock;
}

/** Operations on a VM that exists. Each may be repeated. */
export interface Lifecycle {
  pause(vmi: VmiName, log: Logger): Promise<void>;
  unpause(vmi: VmiName, log: Logger): Promise<void>;
  /** Asks the guest to power off and returns at once. */
  shutdown(vmi: VmiName, log: Logger): Promise<void>;
  /** Ends QEMU by SIGTERM. */
  kill(vmi: VmiName, log: Logger): Promise<void>;
  /** Removes libvirt's definition. */
  delete(vmi: VmiName, log: Logger): Promise<void>;
}

const DESTROY_GRACEFUL = 1;
/** KEEP_NVRAM and CHECKPOINTS_METADATA. */
const UNDEFINE_FLAGS = 8 | 16;

const KILLABLE: ReadonlySet<number> = new Set([DOMAIN_STATE.running, DOMAIN_STATE.paused, DOMAIN_STATE.shutdown]);

async function logged<T>(log: Logger, failure: string, work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (caught) {
    log.error({ reason: caught }, failure);
    throw caught;
  }
}

/** Creates the operations. `@source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/manager.go:1989, 2135, 2178, 2218` */
export function createLifecycle(deps: LifecycleDeps): Lifecycle {
  const { libvirt, metadata, paused } = deps;
  const nameOf = (vmi: VmiName): string => domainName(vmi.metadata.namespace, vmi.metadata.name);
  const find = (vmi: VmiName): Promise<DomainRef | undefined> => findDomain(libvirt, nameOf(vmi));

  async function findOrFail(vmi: VmiName): Promise<DomainRef> {
    const domain = await find(vmi);
    if (domain === undefined) throw new LauncherError('DomainNotFound', 'Domain not found.');
    return domain;
  }

  async function stateOf(domain: DomainRef, log: Logger): Promise<number> {
    return (await logged(log, 'Getting the domain state failed.', libvirt.getState(domain))).state;
  }

  async function pause(vmi: VmiName, log: Logger): Promise<void> {
    const domain = await findOrFail(vmi);
    if ((await stateOf(domain, log)) !== DOMAIN_STATE.running) {
      log.info(`Domain is not running for ${vmi.metadata.name}`);
      return;
    }
    await logged(log, 'Signalling suspension failed.', libvirt.suspend(domain));
    log.info(`Signaled pause for ${vmi.metadata.name}`);
    paused.add(vmi.metadata.uid);
  }

  async function unpause(vmi: VmiName, log: Logger): Promise<void> {
    const domain = await findOrFail(vmi);
    if ((await stateOf(domain, log)) !== DOMAIN_STATE.paused) {
      log.info(`Domain is not paused for ${vmi.metadata.name}`);
      return;
    }
    await logged(log, 'Signalling unpause failed.', libvirt.resume(domain));
    log.info(`Signaled unpause for ${vmi.metadata.name}`);
    paused.delete(vmi.metadata.uid);
    deps.guestTime.start(domain);
  }

  async function shutdown(vmi: VmiName, log: Logger): Promise<void> {
    const domain = await find(vmi);
    if (domain === undefined) return;
    const state = await stateOf(domain, log);
    if (state !== DOMAIN_STATE.running && state !== DOMAIN_STATE.paused) return;
    await logged(log, 'Signalling graceful shutdown failed.', libvirt.shutdown(domain, 0));
    log.info(`Signaled graceful shutdown for ${vmi.metadata.name}`);
    const now = renderTime(deps.clock.now());
    metadata.gracePeriod.update((grace) => ({ ...grace, DeletionTimestamp: grace.DeletionTimestamp ?? now }));
  }

  async function destroy(domain: DomainRef, log: Logger): Promise<void> {
    const { state } = await libvirt.getState(domain);
    if (!KILLABLE.has(state)) {
      log.info('Domain not running, paused or shut down, nothing to do.');
      return;
    }
    await libvirt.destroy(domain, DESTROY_GRACEFUL);
    log.info('Domain stopped.');
  }

  async function kill(vmi: VmiName, log: Logger): Promise<void> {
    const domain = await find(vmi);
    if (domain === undefined) return;
    try {
      await destroy(domain, log);
    } catch (caught) {
      if (isNoDomain(caught)) return;
      log.error({ reason: caught }, 'Destroying the domain state failed.');
      throw caught;
    }
  }

  async function deleteDomain(vmi: VmiName, log: Logger): Promise<void> {
    const domain = await find(vmi);
    if (domain === undefined) return;
    await logged(log, 'Undefining the domain failed.', libvirt.undefine(domain, UNDEFINE_FLAGS));
    log.info('Domain undefined.');
  }

  return {
    pause: (vmi, log) => deps.mutex.run(() => pause(vmi, log)),
    unpause: (vmi, log) => deps.mutex.run(() => unpause(vmi, log)),
    shutdown: (vmi, log) => deps.mutex.run(() => shutdown(vmi, log)),
    kill,
    delete: deleteDomain,
  };
}
