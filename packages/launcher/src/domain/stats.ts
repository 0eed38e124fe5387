import type { AgentStore } from '../agent/store.ts';
import type { Clock } from '../config/clock.ts';
import { LauncherError } from '../errors.ts';
import type { LibvirtPort } from './libvirt-port.ts';
import type { MigrationNumbers } from './stats-json.ts';
import { statsObject } from './stats-json.ts';
import { createTimedCache } from './timed-cache.ts';

/** How long an answer about statistics is served again. */
const STATS_LIFETIME_MS = 3_250;
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
}

/** Statistics of the running domain. */
export interface DomainStatsService {
  /** @throws {LauncherError} `StatsUnavailable` when no domain runs or libvirt fails */
  get(): Promise<Record<string, unknown>>;
}

/**
 * Creates the service. It asks libvirt when it is asked: KubeVirt's refresh in the background costs more than all scrapes.
 *
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/manager.go GetDomainStats
 */
export function createDomainStats(deps: DomainStatsDeps): DomainStatsService {
  const { libvirt, clock } = deps;
  async function read(): Promise<Record<string, unknown> | undefined> {
    const [first] = await libvirt.allDomainStats(STATS_TYPES, STATS_FLAGS);
    if (first === undefined) return undefined;
    const { domain, params } = first;
    const memory = await libvirt.memoryStats(domain, MEMORY_STATS);
    const cpuMap = await libvirt.vcpuPinInfo(domain);
    const load = deps.agent.facts().load;
    return statsObject({ domain, params, memory, cpuMap, aliases: deps.aliases(), load, migration: deps.migration() });
  }
  async function compute(): Promise<Record<string, unknown>> {
    let stats: Record<string, unknown> | undefined;
    try {
      stats = await read();
    } catch (caught) {
      throw LauncherError.from(caught, 'StatsUnavailable', 'failed to get domain stats: ');
    }
    if (stats === undefined) throw new LauncherError('StatsUnavailable', 'empty DomainStats');
    return stats;
  }
  const cache = createTimedCache(clock, STATS_LIFETIME_MS, compute);
  return { get: () => cache.get() };
}
