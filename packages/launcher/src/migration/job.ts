import type { DomainJob, Params } from '../domain/libvirt-port.ts';
import type { MigrationNumbers } from '../domain/stats-json.ts';

/** libvirt's type of a job whose end nobody can foretell: a migration that runs. */
export const UNBOUNDED_JOB = 2;

/** What the monitor reads of a migration that runs. Bytes, bytes per second, milliseconds. */
export interface JobProgress {
  readonly remaining: number | undefined;
  readonly elapsedMs: number | undefined;
  readonly iteration: number | undefined;
  readonly memoryBps: number | undefined;
  readonly numbers: MigrationNumbers;
}

function bigintOf(params: Params, name: string): bigint | undefined {
  const value = params.get(name);
  return typeof value === 'bigint' || typeof value === 'number' ? BigInt(value) : undefined;
}

function numberOf(params: Params, name: string): number | undefined {
  const value = bigintOf(params, name);
  return value === undefined ? undefined : Number(value);
}

function numbersOf(params: Params): MigrationNumbers {
  const page = bigintOf(params, 'memory_page_size');
  const dirtyPages = bigintOf(params, 'memory_dirty_rate');
  const all = {
    dataTotal: bigintOf(params, 'data_total'),
    dataProcessed: bigintOf(params, 'data_processed'),
    memoryBps: bigintOf(params, 'memory_bps'),
    dataRemaining: bigintOf(params, 'data_remaining'),
    memDirtyRate: dirtyPages === undefined || page === undefined ? undefined : dirtyPages * page,
  };
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined));
}

/** Progress of a job; undefined when no migration runs. */
export function progressOf({ type, params }: DomainJob): JobProgress | undefined {
  if (type !== UNBOUNDED_JOB) return undefined;
  return {
    remaining: numberOf(params, 'data_remaining'),
    elapsedMs: numberOf(params, 'time_elapsed'),
    iteration: numberOf(params, 'memory_iteration'),
    memoryBps: numberOf(params, 'memory_bps'),
    numbers: numbersOf(params),
  };
}
