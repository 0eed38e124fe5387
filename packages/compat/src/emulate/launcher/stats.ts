import type { DomainSpec } from '@virtwire/vm-model';

type Value = number | string | boolean;

/** Statistics print each value after a boolean that says whether it is set. */
function withFlags(values: Readonly<Record<string, Value | undefined>>): Readonly<Record<string, Value>> {
  return Object.fromEntries(
    Object.entries(values).flatMap(([key, value]) => [
      [`${key}Set`, value !== undefined],
      [key, value ?? (key === 'Name' || key === 'Alias' || key === 'Path' ? '' : 0)],
    ]),
  );
}

/** Keeps the keys of a release: those that every release has, and those that it is said to have. */
function ofRelease(
  keys: readonly string[],
  values: Readonly<Record<string, Value | undefined>>,
): Readonly<Record<string, Value | undefined>> {
  return Object.fromEntries(
    Object.entries(values).filter(([key]) => !VARIABLE_KEYS.includes(key) || keys.includes(key)),
  );
}

const VARIABLE_KEYS: readonly string[] = ['Cached', 'DiskBps', 'Delay', 'DataTotal', 'NrVirtCpu', 'DirtyRate', 'Load'];

/**
 * GetDomainStats' document of a running domain.
 *
 * @param keys of the {@link VARIABLE_KEYS}, those that the release has.
 * @source wire.md 9 DomainStats; captures v1.0.1/lifecycle/030-GetDomainStats
 */
export function renderStats(spec: DomainSpec, keys: readonly string[]): string {
  const vcpus = spec.VCPUs?.VCPU ?? [];
  const memoryKiB = Number(spec.CurrentMemory?.Value ?? 0);
  const ofThis = (values: Readonly<Record<string, Value | undefined>>): Readonly<Record<string, Value>> =>
    withFlags(ofRelease(keys, values));
  return JSON.stringify({
    Name: spec.Name,
    UUID: spec.UUID,
    Cpu: withFlags({ Time: 580_000_000, User: 290_000_000, System: 290_000_000 }),
    Memory: ofThis({
      Unused: undefined,
      Cached: undefined,
      Available: undefined,
      ActualBalloon: memoryKiB,
      RSS: 94_672,
      SwapIn: undefined,
      SwapOut: undefined,
      MajorFault: undefined,
      MinorFault: undefined,
      Usable: undefined,
      Total: memoryKiB,
    }),
    MigrateDomainJobInfo: ofThis({
      DataTotal: undefined,
      DataProcessed: undefined,
      MemoryBps: undefined,
      DiskBps: undefined,
      DataRemaining: undefined,
      MemDirtyRate: undefined,
    }),
    Vcpu: vcpus.map(() => ofThis({ State: 1, Time: 110_000_000, Wait: 0, Delay: undefined })),
    Net: (spec.Devices.Interfaces ?? []).map((nic) =>
      withFlags({ Name: nic.Target?.Device, Alias: nic.Alias?.Name, ...zeros(NET_KEYS) }),
    ),
    Block: (spec.Devices.Disks ?? []).map((disk) =>
      renderBlock(disk.Target?.Device, disk.Alias?.Name, disk.Source?.File),
    ),
    CPUMapSet: true,
    CPUMap: vcpus.map(() => [true]),
    ...(keys.includes('NrVirtCpu') ? { NrVirtCpu: vcpus.length } : {}),
    ...(keys.includes('DirtyRate') ? { DirtyRate: null } : {}),
    ...(keys.includes('Load') ? { Load: null } : {}),
  });
}

const NET_KEYS = ['RxBytes', 'RxPkts', 'RxErrs', 'RxDrop', 'TxBytes', 'TxPkts', 'TxErrs', 'TxDrop'];
const BLOCK_KEYS = ['RdReqs', 'RdBytes', 'RdTimes', 'WrReqs', 'WrBytes', 'WrTimes', 'FlReqs', 'FlTimes'];

function zeros(keys: readonly string[]): Readonly<Record<string, number>> {
  return Object.fromEntries(keys.map((key) => [key, 0]));
}

/** Only Alias has no flag of its own here. */
function renderBlock(
  name: string | undefined,
  alias: string | undefined,
  path: string | undefined,
): Readonly<Record<string, Value>> {
  return {
    ...withFlags({ Name: name }),
    Alias: alias ?? '',
    ...withFlags({ BackingIndex: 1, Path: path, ...zeros(BLOCK_KEYS), Errors: undefined }),
    ...withFlags({ Allocation: 0, Capacity: 67_108_864, Physical: 200_704 }),
  };
}
