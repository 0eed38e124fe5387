import type { AgentLoad } from '../agent/types.ts';
import type { DomainRef, Params, ParamValue } from './libvirt-port.ts';

/** Everything that one answer about statistics is made of. */
export interface StatsInput {
  readonly domain: DomainRef;
  readonly params: Params;
  /** libvirt's memory statistics by tag, KiB or counts. */
  readonly memory: ReadonlyMap<number, bigint>;
  readonly cpuMap: readonly (readonly boolean[])[];
  /** Target device name to alias without `ua-`. */
  readonly aliases: ReadonlyMap<string, string>;
  readonly load: AgentLoad | undefined;
  readonly migration: MigrationNumbers | undefined;
}

/** Progress of a migration in bytes, or bytes per second. */
export interface MigrationNumbers {
  readonly dataTotal?: bigint;
  readonly dataProcessed?: bigint;
  readonly memoryBps?: bigint;
  readonly dataRemaining?: bigint;
  readonly memDirtyRate?: bigint;
}

type Fields = Record<string, unknown>;
type Value = ParamValue | undefined;

/** A value and before it whether it is known; zero of the same kind stands for an unknown one. */
function known(fields: Fields, name: string, value: Value, zero: string | number = 0): void {
  fields[`${name}Set`] = value !== undefined;
  fields[name] = value ?? zero;
}

function table(source: (key: string) => Value, rows: readonly (readonly [string, string])[]): Fields {
  const fields: Fields = {};
  for (const [name, key] of rows) known(fields, name, source(key));
  return fields;
}

/** JSON name and tag of libvirt's memory statistics. */
const MEMORY_ROWS = [
  ['Unused', '4'],
  ['Cached', '10'],
  ['Available', '5'],
  ['ActualBalloon', '6'],
  ['RSS', '7'],
  ['SwapIn', '0'],
  ['SwapOut', '1'],
  ['MajorFault', '2'],
  ['MinorFault', '3'],
  ['Usable', '8'],
  ['Total', 'total'],
] as const;

const NET_ROWS = [
  ['RxBytes', 'rx.bytes'],
  ['RxPkts', 'rx.pkts'],
  ['RxErrs', 'rx.errs'],
  ['RxDrop', 'rx.drop'],
  ['TxBytes', 'tx.bytes'],
  ['TxPkts', 'tx.pkts'],
  ['TxErrs', 'tx.errs'],
  ['TxDrop', 'tx.drop'],
] as const;

const BLOCK_ROWS = [
  ['RdReqs', 'rd.reqs'],
  ['RdBytes', 'rd.bytes'],
  ['RdTimes', 'rd.times'],
  ['WrReqs', 'wr.reqs'],
  ['WrBytes', 'wr.bytes'],
  ['WrTimes', 'wr.times'],
  ['FlReqs', 'fl.reqs'],
  ['FlTimes', 'fl.times'],
  ['Errors', 'errors'],
  ['Allocation', 'allocation'],
  ['Capacity', 'capacity'],
  ['Physical', 'physical'],
] as const;

function memory(input: StatsInput): Fields {
  return table((tag) => {
    if (tag === 'total') return input.params.get('balloon.current');
    return input.memory.get(Number(tag));
  }, MEMORY_ROWS);
}

function countOf(params: Params, name: string): number {
  return Math.max(0, Math.min(Number(params.get(name) ?? 0), 65_536));
}

function vcpus(params: Params): Fields[] {
  const count = countOf(params, params.has('vcpu.maximum') ? 'vcpu.maximum' : 'vcpu.current');
  return Array.from({ length: count }, (_, i) =>
    table(
      (key) => params.get(`vcpu.${i}.${key}`),
      [
        ['State', 'state'],
        ['Time', 'time'],
        ['Wait', 'wait'],
        ['Delay', 'delay'],
      ],
    ),
  );
}

function nets({ params, aliases }: StatsInput): Fields[] {
  const count = countOf(params, 'net.count');
  return Array.from({ length: count }, (_, i) => {
    const name = params.get(`net.${i}.name`);
    const fields: Fields = {};
    known(fields, 'Name', name, '');
    known(fields, 'Alias', aliases.get(String(name)), '');
    return { ...fields, ...table((key) => params.get(`net.${i}.${key}`), NET_ROWS) };
  });
}

function blocks({ params, aliases }: StatsInput): Fields[] {
  const count = countOf(params, 'block.count');
  return Array.from({ length: count }, (_, i) => {
    const name = params.get(`block.${i}.name`);
    const fields: Fields = {};
    known(fields, 'Name', name, '');
    fields['Alias'] = aliases.get(String(name)) ?? '';
    known(fields, 'BackingIndex', params.get(`block.${i}.backingIndex`));
    known(fields, 'Path', params.get(`block.${i}.path`), '');
    return { ...fields, ...table((key) => params.get(`block.${i}.${key}`), BLOCK_ROWS) };
  });
}

function migration(numbers: MigrationNumbers | undefined): Fields {
  const fields: Fields = {};
  known(fields, 'DataTotal', numbers?.dataTotal);
  known(fields, 'DataProcessed', numbers?.dataProcessed);
  known(fields, 'MemoryBps', numbers?.memoryBps);
  known(fields, 'DataRemaining', numbers?.dataRemaining);
  known(fields, 'MemDirtyRate', numbers?.memDirtyRate);
  return fields;
}

function load(facts: AgentLoad | undefined): Fields {
  const fields: Fields = {};
  known(fields, 'Load1m', facts?.load1m);
  known(fields, 'Load5m', facts?.load5m);
  known(fields, 'Load15m', facts?.load15m);
  return fields;
}

/**
 * The statistics of a domain in the order and form in which Go prints them. Integers may be bigint.
 *
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/statsconv/converter.go
 */
export function statsObject(input: StatsInput): Record<string, unknown> {
  const { params } = input;
  return {
    Name: input.domain.name,
    UUID: input.domain.uuid,
    Cpu: table(
      (key) => params.get(key),
      [
        ['Time', 'cpu.time'],
        ['User', 'cpu.user'],
        ['System', 'cpu.system'],
      ],
    ),
    Memory: memory(input),
    MigrateDomainJobInfo: migration(input.migration),
    Vcpu: vcpus(params),
    Net: nets(input),
    Block: blocks(input),
    CPUMapSet: true,
    CPUMap: input.cpuMap.length === 0 ? null : input.cpuMap,
    DirtyRate: table(
      (key) => params.get(`dirtyrate.${key}`),
      [
        ['CalcStatus', 'calc_status'],
        ['CalcStartTime', 'calc_start_time'],
        ['CalcPeriod', 'calc_period'],
        ['MegabytesPerSecond', 'megabytes_per_second'],
      ],
    ),
    Load: load(input.load),
  };
}
