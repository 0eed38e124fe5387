import { renderTime } from '@virtwire/vm-model';
import type { Logger } from '@virtwire/telemetry';
import type { Clock } from '../config/clock.ts';
import type { LibvirtPort } from '../domain/libvirt-port.ts';
import { textOf } from '../errors.ts';
import type { MetadataCache } from '../metadata/cache.ts';

const POLL_EVERY_MS = 100;
/** An incoming migration whose job never ends is not waited for longer than this. */
const GIVE_UP_AFTER_MS = 60_000;

/** Watches whether an incoming migration has ended. */
export interface TargetMonitor {
  /** Starts watching in the background; does nothing while it watches. */
  start(domainName: string): void;
}

/**
 * Creates the monitor: it stamps the end of the migration into the metadata when libvirt runs no job on the domain any
 * more. A pause on the user's wish looks the same and is stamped too, as KubeVirt does.
 *
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/live-migration-target.go
 */
export function createTargetMonitor(
  libvirt: Pick<LibvirtPort, 'lookupDomainByName' | 'getJobInfo'>,
  metadata: MetadataCache,
  clock: Clock,
  log: Logger,
): TargetMonitor {
  let isRunning = false;

  async function hasJob(domainName: string): Promise<boolean> {
    const domain = await libvirt.lookupDomainByName(domainName);
    return (await libvirt.getJobInfo(domain)).type !== 0;
  }

  async function run(domainName: string): Promise<void> {
    const giveUpAtMs = clock.now() + GIVE_UP_AFTER_MS;
    while (await hasJob(domainName)) {
      if (clock.now() >= giveUpAtMs) throw new Error(`the job did not end within ${GIVE_UP_AFTER_MS / 1_000} s`);
      await clock.sleep(POLL_EVERY_MS);
    }
    const now = renderTime(clock.now());
    metadata.migration.update((migration) => ({ ...migration, EndTimestamp: migration.EndTimestamp ?? now }));
  }

  return {
    start(domainName) {
      if (isRunning) return;
      isRunning = true;
      void run(domainName)
        .catch((caught: unknown) => log.debug(`Could not follow the incoming migration: ${textOf(caught)}`))
        .finally(() => {
          isRunning = false;
        });
    },
  };
}
