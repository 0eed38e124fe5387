import type { DomainSpec, Vmi } from '@virtwire/vm-model';
import { parseQuantity } from '@virtwire/vm-model';

import { LauncherError, textOf } from '../errors.ts';
import type { HostTopology } from './circumstances.ts';
import { guestMemory, quantityToBytes, toInt64 } from './memory.ts';

const MIB = 1n << 20n;
const QUANTITY = '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$';

/**
 * Gives the guest the NUMA cells on which its pinned vCPUs lie, with huge pages of each.
 *
 * @throws {LauncherError} `ConvertFailed` without huge pages, or when memory does not divide into them.
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/converter/vcpu/vcpu.go, numaMapping
 */
export function mapNuma(vmi: Vmi, topology: HostTopology, spec: DomainSpec): void {
  if (topology.numaCells.length === 0) return;
  const vcpusByCell = vcpusByHostCell(topology, spec);
  const hostCells = topology.numaCells.map(({ id }) => id).filter((id) => vcpusByCell.has(id));
  spec.CPU.NUMA = {};
  spec.NUMATune = { Memory: { Mode: 'strict', NodeSet: hostCells.join(',') } };
  const pageSize = vmi.spec.domain.memory?.hugepages?.pageSize;
  const backing = spec.MemoryBacking;
  if (backing?.HugePages === undefined || pageSize === undefined) {
    throw new LauncherError(
      'ConvertFailed',
      'passing through a numa topology is restricted to VMIs with hugepages enabled',
    );
  }
  backing.Allocation = { Mode: 'immediate' };
  const page = pageBytes(pageSize);
  const memory = cellMemory(quantityToBytes(guestMemory(vmi)), page, hostCells.length);
  spec.CPU.NUMA.Cells = hostCells.map((cell, index) => ({
    ID: String(index),
    CPUs: (vcpusByCell.get(cell) ?? []).join(','),
    Memory: toInt64(memory[index] ?? 0n),
    Unit: 'b',
  }));
  spec.NUMATune.MemNodes = hostCells.map((cell, index) => ({ CellID: index, Mode: 'strict', NodeSet: String(cell) }));
  backing.HugePages.HugePage = hostCells.map((_cell, index) => ({
    Size: String(page),
    Unit: 'b',
    NodeSet: String(index),
  }));
  if (vmi.spec.domain.cpu?.realtime !== undefined) backing.NoSharePages = {};
}

function vcpusByHostCell(topology: HostTopology, spec: DomainSpec): Map<number, number[]> {
  const cellByCpu = new Map(topology.numaCells.flatMap((cell) => cell.cpus.map((cpu) => [cpu.id, cell.id] as const)));
  const result = new Map<number, number[]>();
  for (const { VCPU = 0, CPUSet = '' } of spec.CPUTune?.VCPUPin ?? []) {
    const cell = cellByCpu.get(Number(CPUSet));
    if (cell === undefined) {
      throw new LauncherError(
        'ConvertFailed',
        `failed to generate numa pinning information: vcpu ${String(VCPU)} is mapped to a not existing host cpu set ${CPUSet}`,
      );
    }
    result.set(cell, [...(result.get(cell) ?? []), VCPU]);
  }
  return result;
}

/** @throws {LauncherError} `ConvertFailed`, with the words of Kubernetes for a text that is no quantity. */
function pageBytes(pageSize: string): bigint {
  const fail = (reason: string): never => {
    throw new LauncherError('ConvertFailed', `failed to determine if hugepages are enabled: ${reason}`);
  };
  if (parseQuantity(pageSize) === undefined) {
    fail(`could not parse hugepage value ${pageSize}: quantities must match the regular expression '${QUANTITY}'`);
  }
  try {
    const bytes = quantityToBytes(pageSize);
    // The model divides by it and dies.
    return bytes > 0n ? bytes : fail(`a page of ${pageSize} holds nothing`);
  } catch (error) {
    if (error instanceof LauncherError && error.message.startsWith('failed')) throw error;
    return fail(`could not convert page size to MiB ${pageSize}: ${textOf(error)}`);
  }
}

/** Bytes of each guest cell: whole pages, those left over to the first cells. */
function cellMemory(bytes: bigint, page: bigint, cellCount: number): bigint[] {
  const cells = BigInt(cellCount);
  if (bytes < cells * page) {
    // The last factor is the model's own slip; its text is kept.
    throw new LauncherError(
      'ConvertFailed',
      'not enough memory requested to allocate at least one hugepage per numa node: ' +
        `{${String(bytes)} b} < ${String(cells * page * MIB)}`,
    );
  }
  if (bytes % page !== 0n) {
    throw new LauncherError(
      'ConvertFailed',
      `requested memory can't be divided through the numa page size: {${String(bytes)} b} mod ${String(page)} != 0`,
    );
  }
  const pages = bytes / page;
  return Array.from(
    { length: cellCount },
    (_none, index) => (pages / cells + (BigInt(index) < pages % cells ? 1n : 0n)) * page,
  );
}
