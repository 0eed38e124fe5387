import { domainName, renderDuration } from '@virtwire/vm-model';
import type { Vmi } from '@virtwire/vm-model';
import type { Logger } from '@virtwire/telemetry';
import { parseFsFreezeReply } from '../agent/parse-reply.ts';
import type { Clock } from '../config/clock.ts';
import type { ToolPort } from '../disks/ports.ts';
import { LauncherError } from '../errors.ts';
import type { MetadataCache } from '../metadata/cache.ts';
import type { DomainRef, LibvirtPort } from './libvirt-port.ts';
import { isLibvirtCode, LIBVIRT_ERROR } from './libvirt-port.ts';
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
  thaw(vmi: Vmi, log: Logger): Promise<void>;
}

/** An agent that did not answer for so long had the question, and may freeze the guest when nobody waits any more. */
const LATE_MS = 5_000;
const STATUS_COMMAND = '{"execute":"guest-fsfreeze-status"}';

/** Creates a freezer with no thaw ahead. `@source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/storage/fsfreeze.go` */
export function createFreezer(deps: FreezerDeps): Freezer {
  return new AgentFreezer(deps);
}

class AgentFreezer implements Freezer {
  readonly #deps: FreezerDeps;
  #safetyThaw = new AbortController();

  constructor(deps: FreezerDeps) {
    this.#deps = deps;
  }

  async freeze(vmi: Vmi, thawAfterSeconds: number, log: Logger): Promise<void> {
    const { libvirt, metadata, tools, clock, tpmStateDir } = this.#deps;
    if (isMigrating(metadata)) {
      throw new LauncherError('BadRequest', 'failed to freeze VMI, VMI is currently during migration');
    }
    const domain = await this.#find(vmi);
    if ((await this.#statusOf(domain)) === 'frozen') return;
    if (vmi.spec.domain.devices.tpm?.persistent === true) await tools.run('sync', [tpmStateDir]);
    const startedAtMs = clock.now();
    try {
      await libvirt.fsFreeze(domain);
    } catch (caught) {
      const isLate = clock.now() - startedAtMs >= LATE_MS && isLibvirtCode(caught, LIBVIRT_ERROR.agentUnresponsive);
      if (isLate) this.#scheduleThaw(vmi, thawAfterSeconds, log);
      throw caught;
    }
    this.#scheduleThaw(vmi, thawAfterSeconds, log);
  }

  async thaw(vmi: Vmi, log: Logger): Promise<void> {
    this.#safetyThaw.abort();
    const domain = await this.#find(vmi);
    try {
      if ((await this.#statusOf(domain)) === 'thawed') return;
    } catch (caught) {
      log.error({ reason: caught }, 'Failed to get fs status before unfreeze');
    }
    await this.#deps.libvirt.fsThaw(domain);
  }

  #scheduleThaw(vmi: Vmi, seconds: number, log: Logger): void {
    this.#safetyThaw.abort();
    if (seconds === 0) return;
    const ending = new AbortController();
    this.#safetyThaw = ending;
    void this.#deps.clock.sleep(seconds * 1_000, ending.signal).then(async () => {
      if (ending.signal.aborted) return;
      const limit = renderDuration(seconds * 1_000);
      log.warn(`Unfreeze was not called for vmi ${vmi.metadata.name} for more then ${limit}, initiating unfreeze`);
      await this.thaw(vmi, log).catch((caught: unknown) => log.error({ reason: caught }, 'Failed to unfreeze vmi'));
    });
  }

  #find({ metadata }: Vmi): Promise<DomainRef> {
    return this.#deps.libvirt.lookupDomainByName(domainName(metadata.namespace, metadata.name));
  }

  async #statusOf(domain: DomainRef): Promise<string | undefined> {
    return parseFsFreezeReply(await this.#deps.libvirt.agentCommand(domain, STATUS_COMMAND))?.fsFreezeStatus;
  }
}
