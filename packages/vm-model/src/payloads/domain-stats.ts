import { type FieldType, flag, float64, int32, int64, list, omitEmpty, pointer, text, uint64 } from './field-types.ts';
import { type ObjectOf, payload, struct } from './struct.ts';

/** A value with the key before it that says whether it was measured. */
type Measured<K extends string, T> = Readonly<Record<`${K}Set`, FieldType<boolean>>> &
  Readonly<Record<K, FieldType<T>>>;

/** Values of one type, each preceded by its `Set` key. */
function measured<const K extends string, T>(type: FieldType<T>, ...keys: readonly K[]): Measured<K, T> {
  return Object.fromEntries(
    keys.flatMap((key) => [
      [`${key}Set`, flag],
      [key, type],
    ]),
  ) as Measured<K, T>;
}

const traffic = ['RxBytes', 'RxPkts', 'RxErrs', 'RxDrop', 'TxBytes', 'TxPkts', 'TxErrs', 'TxDrop'] as const;
const requests = ['RdReqs', 'RdBytes', 'RdTimes', 'WrReqs', 'WrBytes', 'WrTimes', 'FlReqs', 'FlTimes'] as const;
const memory = [
  ...(['Unused', 'Cached', 'Available', 'ActualBalloon', 'RSS', 'SwapIn', 'SwapOut'] as const),
  ...(['MajorFault', 'MinorFault', 'Usable', 'Total'] as const),
] as const;
const job = ['DataTotal', 'DataProcessed', 'MemoryBps', 'DataRemaining', 'MemDirtyRate'] as const;

const vcpu = struct('DomainStatsVcpu', {
  ...measured(int64, 'State'),
  ...measured(uint64, 'Time', 'Wait', 'Delay'),
});
const net = struct('DomainStatsNet', { ...measured(text, 'Name', 'Alias'), ...measured(uint64, ...traffic) });
const block = struct('DomainStatsBlock', {
  ...measured(text, 'Name'),
  Alias: text,
  ...measured(uint64, 'BackingIndex'),
  ...measured(text, 'Path'),
  ...measured(uint64, ...requests, 'Errors', 'Allocation', 'Capacity', 'Physical'),
});
const dirtyRate = struct('DomainStatsDirtyRate', {
  ...measured(int64, 'CalcStatus', 'CalcStartTime'),
  ...measured(int32, 'CalcPeriod'),
  ...measured(int64, 'MegabytesPerSecond'),
});
const fields = {
  Name: text,
  UUID: text,
  Cpu: pointer(struct('DomainStatsCPU', measured(uint64, 'Time', 'User', 'System'))),
  Memory: pointer(struct('DomainStatsMemory', measured(uint64, ...memory))),
  MigrateDomainJobInfo: pointer(struct('DomainJobInfo', measured(uint64, ...job))),
  Vcpu: list(vcpu),
  Net: list(net),
  Block: list(block),
  CPUMapSet: flag,
  CPUMap: list(list(flag)),
  /** Printed by launchers of v1.0 to v1.8 only, after CPUMap. */
  NrVirtCpu: omitEmpty(int64),
  DirtyRate: pointer(dirtyRate),
  Load: pointer(struct('DomainStatsLoad', measured(float64, 'Load1m', 'Load5m', 'Load15m'))),
};

/** Statistics of a domain. */
export type DomainStatistics = ObjectOf<typeof fields>;

/**
 * Answer of GetDomainStats. Launchers before v1.9 answer `null` or nothing when there is no domain: the zero value has
 * an empty name, by which callers know it.
 *
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/stats/types.go
 */
export const domainStats = payload(struct('DomainStats', fields));
