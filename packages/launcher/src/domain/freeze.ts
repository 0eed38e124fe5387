import { domainName, renderDuration } from '@virtwire/vm-model';
import type { Vmi } from '@virtwire/vm-model';
import type { Logger } from '@virtwire/telemetry';
import { parseFsFreezeReply } from '../agent/parse-reply.ts';
import type { Clock } from '../config/clock.ts';
import type { ToolPort } from '../disks/ports.ts';
import { LauncherError } from '../errors.ts';
import type { MetadataCache } from '../metadata/cache.ts';
import type { DomainRef, LibvirtPort } from './libvirt-port.ts';
import { isNoDomain, LIBVIRT_ERROR, LibvirtCallError } from './libvirt-port.ts';
import { isMigrating } from './migrating.ts';

/** What freezing needs. */
export interface FreezerDeps {
  /** The connection for calls that wait for the guest. */
  readonly libvirt: Pick<LibvirtPort, 'lookupDomainByName' | 'agentCommand' | 'fsFreeze' | 'fsThaw'>;
  readonly metadata: MetadataCache;
  readonly tools: ToolPort;
  readonly clock: Clock;
  /** Where a persistent TPM of the VM keeps its state. */
  readonly tpmStateDir: string;
}

/** Holds the guest's file systems still, for a backup of its disks. */
export interface Freezer {
  /** @param thawAfterSeconds 0 is never; otherwise a guest that nobody thaws is thawed then. */
  freeze(vmi: Vmi, thawAfterSeconds: number, log: Logger): Promise<void>;
  /**
   * Thaws the guest. When that fails, and the guest may be frozen, it is tried again in the background, for ten minutes at
   * most: libvirt may be away only for a moment, and a guest that is left frozen stands still for good.
   *
   * @throws what kept the first attempt from it
   */
  thaw(vmi: Vmi, log: Logger): Promise<void>;
}

/** An agent that did not answer for so long had the question, and may freeze the guest when nobody waits any more. */
const LATE_MS = 5_000;
const FIRST_RETRY_MS = 1_000;
const LONGEST_RETRY_MS = 30_000;
const RETRY_LIMIT_MS = 600_000;
/** As much of an agent's answer as an error shows. */
const SHOWN_CHARS = 1_024;
const STATUS_COMMAND = '{"execute":"guest-fsfreeze-status"}';

/** Creates a freezer with no thaw ahead. `@source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/storage/fsfreeze.go` */
export function createFreezer(deps: FreezerDeps): Freezer {
  return new AgentFreezer(deps);
}

/**
 * Says that a freeze that failed has not frozen the guest, and will not: libvirt refused it, or had no agent to ask. After
 * a silence, or when libvirt went away over it, the guest may be frozen.
 */
function isCertain(caught: unknown, afterMs: number): boolean {
  if (!(caught instanceof LibvirtCallError)) return true;
  const { systemError, operationTimeout, agentUnresponsive } = LIBVIRT_ERROR;
  if (caught.code === agentUnresponsive) return afterMs < LATE_MS;
  return caught.code !== systemError && caught.code !== operationTimeout;
}

class AgentFreezer implements Freezer {
  readonly #deps: FreezerDeps;
  #safetyThaw = new AbortController();
  /** A freeze was asked for, and no thaw has succeeded since. */
  #mayBeFrozen = false;
  /** The safety thaw is one that failed and is tried again. */
  #isThawing = false;

  constructor(deps: FreezerDeps) {
    this.#deps = deps;
  }

  async freeze(vmi: Vmi, thawAfterSeconds: number, log: Logger): Promise<void> {
    const { libvirt, metadata, tools, clock, tpmStateDir } = this.#deps;
    if (isMigrating(metadata)) {
      throw new LauncherError('BadRequest', 'failed to freeze VMI, VMI is currently during migration');
    }
    const domain = await this.#find(vmi);
    if ((await this.#statusOf(domain)) === 'frozen') {
      // Who freezes the guest now does not want an earlier thaw to be made up for.
      if (this.#isThawing) this.#noteFreeze(vmi, thawAfterSeconds, log);
      return;
    }
    if (vmi.spec.domain.devices.tpm?.persistent === true) await tools.run('sync', [tpmStateDir]);
    const startedAtMs = clock.now();
    try {
      await libvirt.fsFreeze(domain);
    } catch (caught) {
      if (isCertain(caught, clock.now() - startedAtMs)) throw caught;
      this.#noteFreeze(vmi, thawAfterSeconds, log);
      throw caught;
    }
    this.#noteFreeze(vmi, thawAfterSeconds, log);
  }

  async thaw(vmi: Vmi, log: Logger): Promise<void> {
    this.#safetyThaw.abort();
    this.#isThawing = false;
    try {
      await this.#thawOnce(vmi, log);
    } catch (caught) {
      if (this.#mayBeFrozen && !isNoDomain(caught)) void this.#thawLater(vmi, log);
      throw caught;
    }
  }

  async #thawOnce(vmi: Vmi, log: Logger): Promise<void> {
    const domain = await this.#find(vmi);
    if (!(await this.#isThawed(domain, log))) await this.#deps.libvirt.fsThaw(domain);
    this.#mayBeFrozen = false;
  }

  async #isThawed(domain: DomainRef, log: Logger): Promise<boolean> {
    try {
      return (await this.#statusOf(domain)) === 'thawed';
    } catch (caught) {
      log.error({ reason: caught }, 'Failed to get fs status before unfreeze');
      return false;
    }
  }

  async #thawLater(vmi: Vmi, log: Logger): Promise<void> {
    const { clock } = this.#deps;
    const ending = new AbortController();
    this.#safetyThaw = ending;
    this.#isThawing = true;
    const isOver = (): boolean => ending.signal.aborted;
    const giveUpAtMs = clock.now() + RETRY_LIMIT_MS;
    for (let pauseMs = FIRST_RETRY_MS; clock.now() < giveUpAtMs; pauseMs = Math.min(2 * pauseMs, LONGEST_RETRY_MS)) {
      await clock.sleep(pauseMs, ending.signal);
      if (isOver()) return;
      try {
        await this.#thawOnce(vmi, log);
        log.info('The guest is thawed after all');
        return;
      } catch (caught) {
        if (isNoDomain(caught)) return;
        log.debug({ reason: caught }, 'The guest is not thawed yet');
      }
    }
    log.error('Failed to unfreeze vmi, giving up');
  }

  #noteFreeze(vmi: Vmi, thawAfterSeconds: number, log: Logger): void {
    this.#mayBeFrozen = true;
    this.#scheduleThaw(vmi, thawAfterSeconds, log);
  }

  #scheduleThaw(vmi: Vmi, seconds: number, log: Logger): void {
    this.#safetyThaw.abort();
    this.#isThawing = false;
    if (seconds === 0) return;
    const ending = new AbortController();
    this.#safetyThaw = ending;
    void this.#deps.clock.sleep(seconds * 1_000, ending.signal).then(async () => {
      if (ending.signal.aborted) return;
      const limit = renderDuration(seconds * 1_000);
      log.warn(`Unfreeze was not called for vmi ${vmi.metadata.name} for more then ${limit}, initiating unfreeze`);
      await this.thaw(vmi, log).catch((caught: unknown) => {
        log.error({ reason: caught }, 'Failed to unfreeze vmi');
      });
    });
  }

  #find({ metadata }: Vmi): Promise<DomainRef> {
    return this.#deps.libvirt.lookupDomainByName(domainName(metadata.namespace, metadata.name));
  }

  /** @throws {LauncherError} `GuestCommandFailed` for an agent that does not say; a guest is not frozen blindly. */
  async #statusOf(domain: DomainRef): Promise<string> {
    const reply = await this.#deps.libvirt.agentCommand(domain, STATUS_COMMAND);
    const status = parseFsFreezeReply(reply)?.fsFreezeStatus;
    if (status !== undefined) return status;
    throw new LauncherError('GuestCommandFailed', `failed to strip FSFreeze status: ${reply.slice(0, SHOWN_CHARS)}`);
  }
}
