import type { CmdAnswer, CmdHandlers, cmdV1 } from '@virtwire/shared-proto';
import { renderJson } from '@virtwire/vm-model';
import type { AgentDataField, RawAgentData } from '../agent/raw-data.ts';
import { AGENT_DATA } from '../agent/raw-data.ts';
import type { AgentStore } from '../agent/store.ts';
import type { DomainStatsService } from '../domain/stats.ts';
import type { TimedCache } from '../domain/timed-cache.ts';
import { LauncherError, textOf } from '../errors.ts';
import { wireError } from './wire-error.ts';

/** What the methods need. */
export interface StatsRpcDeps {
  readonly stats: DomainStatsService;
  readonly dirtyRate: TimedCache<bigint | undefined>;
  readonly agentData: RawAgentData;
  readonly agent: AgentStore;
  /** `--vm-stats-collector` */
  readonly isCollectorOn: boolean;
}

interface Outcome {
  readonly success: boolean;
  readonly message?: string;
}

/** A part of an answer: its outcome for the whole, and its fields. */
interface Part {
  readonly failure: string | undefined;
  readonly fields: CmdAnswer<'GetVMStats'>;
}

async function attempt<T>(work: () => Promise<T>): Promise<{ value: T; failure?: never } | { failure: string }> {
  try {
    return { value: await work() };
  } catch (caught) {
    return { failure: textOf(wireError(caught)) };
  }
}

function outcomeOf(failure: string | undefined): Outcome {
  return failure === undefined ? { success: true } : { success: false, message: failure };
}

async function domainPart({ stats }: StatsRpcDeps): Promise<Part> {
  const got = await attempt(async () => renderJson(await stats.get()));
  if (got.failure !== undefined) {
    return {
      failure: `domain stats: ${got.failure}`,
      fields: { domainStats: { response: outcomeOf(got.failure) } },
    };
  }
  return { failure: undefined, fields: { domainStats: { response: { success: true }, domainStats: got.value } } };
}

async function dirtyRatePart(deps: StatsRpcDeps): Promise<Part> {
  const got = await attempt(() => rateOf(deps));
  if (got.failure !== undefined) {
    return {
      failure: `dirty rate stats: ${got.failure}`,
      fields: { dirtyRateStats: { response: outcomeOf(got.failure) } },
    };
  }
  return { failure: undefined, fields: { dirtyRateStats: { response: { success: true }, dirtyRateMbs: got.value } } };
}

async function agentPart({ agentData }: StatsRpcDeps, field: AgentDataField, command: string): Promise<Part> {
  const got = await attempt(() => agentData[field].get());
  if (got.failure !== undefined) {
    return { failure: `agent data ${command}: ${got.failure}`, fields: { [field]: outcomeOf(got.failure) } };
  }
  return { failure: undefined, fields: { [field]: { success: true, message: got.value } } };
}

function versionPart({ agent }: StatsRpcDeps): Part {
  const { version } = agent.facts();
  const message = version === undefined || version === '' ? {} : { message: version };
  return { failure: undefined, fields: { guestAgentVersion: { success: true, ...message } } };
}

async function rateOf({ dirtyRate }: StatsRpcDeps): Promise<bigint> {
  const rate = await dirtyRate.get();
  if (rate === undefined) throw new LauncherError('StatsUnavailable', 'Dirty rate MegabytesPerSecondSet is false');
  return rate;
}

/** Everything that was asked for, one part after the other; a part that fails leaves the others as they are. */
async function collect(deps: StatsRpcDeps, request: cmdV1.VMStatsRequest): Promise<CmdAnswer<'GetVMStats'>> {
  const parts: Part[] = [];
  if (request.domainStats !== undefined) parts.push(await domainPart(deps));
  if (request.dirtyRate !== undefined) parts.push(await dirtyRatePart(deps));
  const asked = AGENT_DATA.filter(([field]) => request[field] !== undefined);
  if (asked.length > 0) parts.push(versionPart(deps));
  for (const [field, command] of asked) parts.push(await agentPart(deps, field, command));
  const failures = parts.flatMap(({ failure }) => failure ?? []);
  const response = outcomeOf(failures.length === 0 ? undefined : failures.join('; '));
  return Object.assign({ response }, ...parts.map(({ fields }) => fields)) as CmdAnswer<'GetVMStats'>;
}

/** Methods about numbers. `@source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/cmd-server/vmstats.go` */
export function statsHandlers(deps: StatsRpcDeps) {
  return {
    async getDomainStats() {
      const got = await attempt(async () => renderJson(await deps.stats.get()));
      if (got.failure !== undefined) throw new LauncherError('StatsUnavailable', got.failure);
      return { domainStats: got.value };
    },
    async getDomainDirtyRateStats() {
      const got = await attempt(() => rateOf(deps));
      if (got.failure !== undefined) throw new LauncherError('StatsUnavailable', got.failure);
      return { dirtyRateMbs: got.value };
    },
    getVMStats(request: cmdV1.VMStatsRequest) {
      if (deps.isCollectorOn) return collect(deps, request);
      throw new LauncherError('StatsUnavailable', 'VMStatsCollector feature gate is not enabled');
    },
  } satisfies CmdHandlers;
}
