import { renderTime } from '@virtwire/vm-model';
import type { Logger } from '@virtwire/telemetry';
import type { Clock } from '../config/clock.ts';
import type { DomainRef, LibvirtPort } from '../domain/libvirt-port.ts';
import { textOf } from '../errors.ts';
import type { MetadataCache } from '../metadata/cache.ts';

/** libvirt's number of the operation of a job that brings a domain here. */
const MIGRATION_IN = 4;
const POLL_EVERY_MS = 100;
const ROUND_MS = 3_000;
/** Pauses between rounds of polling. */
const PAUSES_MS = [1_000, 2_000, 3_000];

/** Watches whether an incoming migration has ended. */
export interface TargetMonitor {
  /** Starts watching in the background; does nothing while it watches. */
  start(domainName: string): void;
}

type Outcome = 'over' | 'busy' | 'lost';

/**
 * Creates the monitor: it stamps the end of the migration into the metadata when the incoming job has let go of the
 * domain, as far as 18 s of polling can tell, and then in any case: the guest runs here, or did so. A look for the domain
 * that fails ends its round. A pause on the user's wish looks the same and is stamped too, as KubeVirt does.
 *
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/live-migration-target.go
 */
export function createTargetMonitor(
  libvirt: Pick<LibvirtPort, 'lookupDomainByName' | 'getJobInfo' | 'getJobStats'>,
  metadata: Pick<MetadataCache, 'migration'>,
  clock: Clock,
  log: Logger,
): TargetMonitor {
  let isRunning = false;

  /** Releases of libvirt that answer no question about an incoming job are busy until they answer. */
  async function look(domainName: string): Promise<Outcome> {
    let domain: DomainRef;
    try {
      domain = await libvirt.lookupDomainByName(domainName);
    } catch (caught) {
      log.debug(`the domain that came in is not found: ${textOf(caught)}`);
      return 'lost';
    }
    try {
      if ((await libvirt.getJobInfo(domain)).type === 0) return 'over';
      const { params } = await libvirt.getJobStats(domain, 0);
      return params.get('operation') === MIGRATION_IN ? 'busy' : 'over';
    } catch (caught) {
      log.debug(`the incoming migration is not over: ${textOf(caught)}`);
      return 'busy';
    }
  }

  async function round(domainName: string): Promise<Outcome> {
    const endAtMs = clock.now() + ROUND_MS;
    for (;;) {
      const outcome = await look(domainName);
      if (outcome !== 'busy' || clock.now() >= endAtMs) return outcome;
      await clock.sleep(POLL_EVERY_MS);
    }
  }

  async function run(domainName: string): Promise<void> {
    let outcome = await round(domainName);
    for (const pauseMs of PAUSES_MS) {
      if (outcome === 'over') break;
      await clock.sleep(pauseMs);
      outcome = await round(domainName);
    }
    if (outcome !== 'over') log.warn('the end of the incoming migration is not seen, going on without it');
    const now = renderTime(clock.now());
    metadata.migration.update((migration) => ({ ...migration, EndTimestamp: migration.EndTimestamp ?? now }));
  }

  return {
    start(domainName) {
      if (isRunning) return;
      isRunning = true;
      void run(domainName).finally(() => {
        isRunning = false;
      });
    },
  };
}
