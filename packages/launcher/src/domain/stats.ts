import type { AgentStore } from '../agent/store.ts';
import type { Clock } from '../config/clock.ts';
import { TOO_LATE, within } from '../config/within.ts';
import { LauncherError } from '../errors.ts';
import type { DomainRef, LibvirtPort } from './libvirt-port.ts';
import type { MigrationNumbers } from './stats-json.ts';
import { statsObject } from './stats-json.ts';
import { createTimedCache } from './timed-cache.ts';

/** How long an answer about statistics is served again. */
const STATS_LIFETIME_MS = 3_250;
/** CPU_TOTAL, BALLOON, VCPU, INTERFACE, BLOCK, DIRTYRATE. */
const STATS_TYPES = 2 | 4 | 8 | 16 | 32 | 512;
/** RUNNING and PAUSED. */
const STATS_FLAGS = 16 | 32;
/** Without waiting for a job that holds the domain. */
const NOWAIT = 2 ** 29;
const MEMORY_STATS = 13;
/** FM-8.9: how long each part of the numbers is waited for while a migration holds the domain. */
const BUSY_LIMIT_MS = 300;

/** What statistics are made from. */
export interface DomainStatsDeps {
  readonly libvirt: Pick<LibvirtPort, 'allDomainStats' | 'memoryStats' | 'vcpuPinInfo'>;
  readonly agent: AgentStore;
  readonly aliases: () => ReadonlyMap<string, string>;
  readonly migration: () => MigrationNumbers | undefined;
  /** The VM is on its way, and libvirt may answer nothing for long. */
  readonly isMigrating: () => boolean;
  readonly clock: Clock;
}

/** Statistics of the running domain. */
export interface DomainStatsService {
  /** @throws {LauncherError} `StatsUnavailable` when no domain runs or libvirt fails */
  get(): Promise<Record<string, unknown>>;
}

/**
 * A question whose answer is waited for only as long as nothing holds the domain; else the last answer has to do. One at
 * a time.
 */
function createPatience<T>(
  { clock, isMigrating }: Pick<DomainStatsDeps, 'clock' | 'isMigrating'>,
  ask: (domain: DomainRef) => Promise<T>,
  none: T,
): (domain: DomainRef) => Promise<T> {
  let last = none;
  let asking: Promise<T> | undefined;
  return async (domain) => {
    asking ??= ask(domain).finally(() => (asking = undefined));
    if (!isMigrating()) return (last = await asking);
    const answer = await within(clock, BUSY_LIMIT_MS, asking);
    if (answer !== TOO_LATE) last = answer;
    return last;
  };
}

/**
 * Creates the service. It asks libvirt when it is asked: KubeVirt's refresh in the background costs more than all scrapes.
 *
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/manager.go GetDomainStats
 */
export function createDomainStats(deps: DomainStatsDeps): DomainStatsService {
  const { libvirt, clock } = deps;
  const memoryOf = createPatience(deps, (domain: DomainRef) => libvirt.memoryStats(domain, MEMORY_STATS), new Map());
  const cpuMapOf = createPatience(deps, (domain: DomainRef) => libvirt.vcpuPinInfo(domain), []);
  async function read(): Promise<Record<string, unknown> | undefined> {
    const flags = deps.isMigrating() ? STATS_FLAGS + NOWAIT : STATS_FLAGS;
    const [first] = await libvirt.allDomainStats(STATS_TYPES, flags);
    if (first === undefined) return undefined;
    const { domain, params } = first;
    const memory = await memoryOf(domain);
    const cpuMap = await cpuMapOf(domain);
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
