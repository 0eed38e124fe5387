import type { Logger } from '@virtwire/telemetry';
import type { Clock } from '../config/clock.ts';
import { LauncherError } from '../errors.ts';
import type { DomainStatsRecord, LibvirtPort, Params } from './libvirt-port.ts';
import type { TimedCache } from './timed-cache.ts';
import { createTimedCache } from './timed-cache.ts';

/** What a measurement needs. */
export interface DirtyRateDeps {
  readonly libvirt: Pick<LibvirtPort, 'allDomainStats' | 'startDirtyRateCalc'>;
  readonly clock: Clock;
  readonly log: Logger;
}

const LIFETIME_MS = 3_000;
const MEASURE_SECONDS = 1;
const POLL_EVERY_MS = 200;
const POLL_LIMIT_MS = 1_000;
const STATS_DIRTYRATE = 512;
/** RUNNING and PAUSED. */
const STATS_FLAGS = 16 | 32;
const STATUS_MEASURED = 2;
const STATUS_TEXTS = ['DOMAIN_DIRTYRATE_UNSTARTED', 'DOMAIN_DIRTYRATE_MEASURING', 'DOMAIN_DIRTYRATE_MEASURED'];

function failure(text: string): LauncherError {
  const prefix = 'failed to get domain dirty rate stats: failed to get dirty rate stats: ';
  return new LauncherError('StatsUnavailable', `${prefix}${text}`);
}

/** What Go prints for a cause that is not there; handlers know the text. */
const NO_CAUSE = '%!w(<nil>)';

/**
 * Creates the measurement of how quickly the guest changes its memory, in MiB per second; it takes a second or two, and
 * is kept for three. KubeVirt reports the measurement before the one that it made, and so fails at first; this one
 * reads what it measured.
 *
 * @returns undefined for a rate that libvirt measured and did not tell.
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/manager.go getDomainDirtyRateStats
 */
export function createDirtyRate({ libvirt, clock, log }: DirtyRateDeps): TimedCache<bigint | undefined> {
  const read = async (): Promise<DomainStatsRecord | undefined> => {
    try {
      return (await libvirt.allDomainStats(STATS_DIRTYRATE, STATS_FLAGS))[0];
    } catch (caught) {
      throw LauncherError.from(caught, 'StatsUnavailable', 'failed to get domain dirty rate stats: ');
    }
  };
  async function measured(): Promise<Params> {
    const giveUpAtMs = clock.now() + POLL_LIMIT_MS;
    for (;;) {
      const params = (await read())?.params;
      const status = params?.get('dirtyrate.calc_status');
      if (params === undefined || status === undefined) throw failure(NO_CAUSE);
      if (Number(status) === STATUS_MEASURED) return params;
      if (clock.now() >= giveUpAtMs) {
        throw failure(`dirty calc status is ${STATUS_TEXTS[Number(status)] ?? String(status)}`);
      }
      await clock.sleep(POLL_EVERY_MS);
    }
  }
  return createTimedCache(clock, LIFETIME_MS, async () => {
    const first = await read();
    if (first === undefined) throw failure(NO_CAUSE);
    try {
      await libvirt.startDirtyRateCalc(first.domain, MEASURE_SECONDS);
    } catch (caught) {
      log.error({ reason: caught }, 'failed to start dirty rate calculation');
    }
    await clock.sleep(MEASURE_SECONDS * 1_000);
    const rate = (await measured()).get('dirtyrate.megabytes_per_second');
    return rate === undefined ? undefined : BigInt(rate);
  });
}
