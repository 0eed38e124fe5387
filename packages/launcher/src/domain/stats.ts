import type { Logger } from '@virtwire/telemetry';
import type { AgentStore } from '../agent/store.ts';
import type { Clock } from '../config/clock.ts';
import { LauncherError, textOf } from '../errors.ts';
import type { LibvirtPort } from './libvirt-port.ts';
import type { MigrationNumbers } from './stats-json.ts';
import { statsObject } from './stats-json.ts';
import { createTimedCache } from './timed-cache.ts';

/** How long an answer about statistics is served again, and how often it is made in the background. */
export const STATS_LIFETIME_MS = 3_250;
/** CPU_TOTAL, BALLOON, VCPU, INTERFACE, BLOCK, DIRTYRATE. */
const STATS_TYPES = 2 | 4 | 8 | 16 | 32 | 512;
/** RUNNING and PAUSED. */
const STATS_FLAGS = 16 | 32;
const MEMORY_STATS = 13;

/** What statistics are made from. */
export interface DomainStatsDeps {
  readonly libvirt: Pick<LibvirtPort, 'allDomainStats' | 'memoryStats' | 'vcpuPinInfo'>;
  readonly agent: AgentStore;
  readonly aliases: () => ReadonlyMap<string, string>;
  readonly migration: () => MigrationNumbers | undefined;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Statistics of the running domain. */
export interface DomainStatsService {
  /** @throws {LauncherError} `StatsUnavailable` when no domain runs; or libvirt's error */
  get(): Promise<Record<string, unknown>>;
  /** Keeps the cached answer fresh until the signal aborts, so that a scrape need not wait for libvirt. */
  keepFresh(signal: AbortSignal): Promise<void>;
}

/** Creates the service. `@source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/manager.go GetDomainStats` */
export function createDomainStats(deps: DomainStatsDeps): DomainStatsService {
  const { libvirt, clock } = deps;
  async function compute(): Promise<Record<string, unknown>> {
    const [first] = await libvirt.allDomainStats(STATS_TYPES, STATS_FLAGS);
    if (first === undefined) throw new LauncherError('StatsUnavailable', 'empty DomainStats');
    const { domain, params } = first;
    const memory = await libvirt.memoryStats(domain, MEMORY_STATS);
    const cpuMap = await libvirt.vcpuPinInfo(domain);
    const load = deps.agent.facts().load;
    return statsObject({ domain, params, memory, cpuMap, aliases: deps.aliases(), load, migration: deps.migration() });
  }
  const cache = createTimedCache(clock, STATS_LIFETIME_MS, compute);
  return {
    get: () => cache.get(),
    async keepFresh(signal) {
      while (!signal.aborted) {
        await cache.get().catch((caught: unknown) => {
          deps.log.debug(`Error updating cache: ${textOf(caught)}`);
        });
        await clock.sleep(STATS_LIFETIME_MS, signal);
      }
    },
  };
}
