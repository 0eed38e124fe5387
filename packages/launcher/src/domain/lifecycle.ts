import { domainName, renderTime } from '@virtwire/vm-model';
import type { Vmi } from '@virtwire/vm-model';
import type { Logger } from '@virtwire/telemetry';
import type { Clock } from '../config/clock.ts';
import { LauncherError } from '../errors.ts';
import type { MetadataCache } from '../metadata/cache.ts';
import { findDomain } from './find-domain.ts';
import type { GuestTimeSync } from './guest-time.ts';
import type { DomainRef, LibvirtPort } from './libvirt-port.ts';
import { isLibvirtCode, isNoDomain, LIBVIRT_ERROR } from './libvirt-port.ts';
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
  /** The connection for calls that wait for the guest. */
  readonly guestLibvirt: Pick<LibvirtPort, 'shutdown'>;
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
/** Agent first, then ACPI. */
const SHUTDOWN_DEFAULT = 0;
const SHUTDOWN_ACPI = 1;
/**
 * A shutdown through the agent returns when the guest is down, or after a minute. It is not waited for that long: what
 * comes next, to the kill at the end of the grace period, must not wait for a guest that does not obey.
 */
const SHUTDOWN_PATIENCE_MS = 3_000;
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

/** Creates the operations. */
export function createLifecycle(deps: LifecycleDeps): Lifecycle {
  return new LibvirtLifecycle(deps);
}

/** @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/manager.go:1989, 2135, 2178, 2218 */
class LibvirtLifecycle implements Lifecycle {
  readonly #deps: LifecycleDeps;
  #isAgentAsked = false;

  constructor(deps: LifecycleDeps) {
    this.#deps = deps;
  }

  pause(vmi: VmiName, log: Logger): Promise<void> {
    return this.#deps.mutex.run(() => this.#pause(vmi, log));
  }

  unpause(vmi: VmiName, log: Logger): Promise<void> {
    return this.#deps.mutex.run(() => this.#unpause(vmi, log));
  }

  shutdown(vmi: VmiName, log: Logger): Promise<void> {
    return this.#deps.mutex.run(() => this.#shutdown(vmi, log));
  }

  async kill(vmi: VmiName, log: Logger): Promise<void> {
    const domain = await this.#find(vmi);
    if (domain === undefined) return;
    try {
      await this.#destroy(domain, log);
    } catch (caught) {
      if (isNoDomain(caught)) return;
      log.error({ reason: caught }, 'Destroying the domain state failed.');
      throw caught;
    }
  }

  async delete(vmi: VmiName, log: Logger): Promise<void> {
    const domain = await this.#find(vmi);
    if (domain === undefined) return;
    await logged(log, 'Undefining the domain failed.', this.#deps.libvirt.undefine(domain, UNDEFINE_FLAGS));
    log.info('Domain undefined.');
  }

  async #pause(vmi: VmiName, log: Logger): Promise<void> {
    const domain = await this.#findOrFail(vmi);
    if ((await this.#stateOf(domain, log)) !== DOMAIN_STATE.running) {
      log.info(`Domain is not running for ${vmi.metadata.name}`);
      return;
    }
    await logged(log, 'Signalling suspension failed.', this.#deps.libvirt.suspend(domain));
    log.info(`Signaled pause for ${vmi.metadata.name}`);
    this.#deps.paused.add(vmi.metadata.uid);
  }

  async #unpause(vmi: VmiName, log: Logger): Promise<void> {
    const domain = await this.#findOrFail(vmi);
    if ((await this.#stateOf(domain, log)) !== DOMAIN_STATE.paused) {
      log.info(`Domain is not paused for ${vmi.metadata.name}`);
      return;
    }
    await logged(log, 'Signalling unpause failed.', this.#deps.libvirt.resume(domain));
    log.info(`Signaled unpause for ${vmi.metadata.name}`);
    this.#deps.paused.delete(vmi.metadata.uid);
    this.#deps.guestTime.start(domain);
  }

  async #shutdown(vmi: VmiName, log: Logger): Promise<void> {
    const { metadata, clock } = this.#deps;
    const domain = await this.#find(vmi);
    if (domain === undefined) return;
    if (!(await this.#isUp(domain, log))) return;
    try {
      await this.#signalShutdown(domain, log);
    } catch (caught) {
      // The guest may have turned itself off between the question and the request.
      if (!(await this.#isUp(domain, log).catch(() => false))) return;
      log.error({ reason: caught }, 'Signalling graceful shutdown failed.');
      throw caught;
    }
    log.info(`Signaled graceful shutdown for ${vmi.metadata.name}`);
    const now = renderTime(clock.now());
    metadata.gracePeriod.update((grace) => ({ ...grace, DeletionTimestamp: grace.DeletionTimestamp ?? now }));
  }

  async #isUp(domain: DomainRef, log: Logger): Promise<boolean> {
    const state = await this.#stateOf(domain, log);
    return state === DOMAIN_STATE.running || state === DOMAIN_STATE.paused;
  }

  async #signalShutdown(domain: DomainRef, log: Logger): Promise<void> {
    const { libvirt, guestLibvirt, clock } = this.#deps;
    if (this.#isAgentAsked) {
      await libvirt.shutdown(domain, SHUTDOWN_ACPI);
      return;
    }
    this.#isAgentAsked = true;
    const call = guestLibvirt.shutdown(domain, SHUTDOWN_DEFAULT).finally(() => {
      this.#isAgentAsked = false;
    });
    const patience = new AbortController();
    const timer = clock.sleep(SHUTDOWN_PATIENCE_MS, patience.signal).then(() => false);
    const isDone = await Promise.race([call.then(() => true), timer]).finally(() => patience.abort());
    if (isDone) return;
    log.info('The guest agent was asked to shut the guest down and has not done so yet');
    call.catch((caught: unknown) => log.info({ reason: caught }, 'The guest agent did not shut the guest down'));
  }

  async #destroy(domain: DomainRef, log: Logger): Promise<void> {
    const { libvirt } = this.#deps;
    const { state } = await libvirt.getState(domain);
    if (!KILLABLE.has(state)) {
      log.info('Domain not running, paused or shut down, nothing to do.');
      return;
    }
    try {
      await libvirt.destroy(domain, DESTROY_GRACEFUL);
    } catch (caught) {
      // QEMU may end between the signal and libvirt's look at it, which libvirt then calls an invalid operation.
      if (!isLibvirtCode(caught, LIBVIRT_ERROR.operationInvalid)) throw caught;
      if (KILLABLE.has((await libvirt.getState(domain)).state)) throw caught;
    }
    log.info('Domain stopped.');
  }

  #find({ metadata }: VmiName): Promise<DomainRef | undefined> {
    return findDomain(this.#deps.libvirt, domainName(metadata.namespace, metadata.name));
  }

  async #findOrFail(vmi: VmiName): Promise<DomainRef> {
    const domain = await this.#find(vmi);
    if (domain === undefined) throw new LauncherError('DomainNotFound', 'Domain not found.');
    return domain;
  }

  async #stateOf(domain: DomainRef, log: Logger): Promise<number> {
    return (await logged(log, 'Getting the domain state failed.', this.#deps.libvirt.getState(domain))).state;
  }
}
