import { readFile } from 'node:fs/promises';
import { join } from 'node:path/posix';

import type { DomainSpec, Vmi } from '@virtwire/vm-model';

import { parseCpuSet } from '../converter/cpu-set.ts';
import { renderPciAddress } from '../converter/pci-address.ts';
import { hasDedicatedCpus, hasNumaPassthrough } from '../converter/vmi-traits.ts';

/** A NUMA node of the host that a device of the VM is attached to. */
export interface HostNode {
  readonly node: number;
  readonly cpus: readonly number[];
}

/** Nodes of the domain's PCI devices by their addresses on the host. */
export type HostNodes = ReadonlyMap<string, HostNode>;

/**
 * The nodes that the guest's devices are attached to, where its CPUs are placed so that it matters. Devices of which the
 * host says nothing are left out.
 *
 * @param sysDir `/sys`, unless a test has another.
 * @source KubeVirt v1.9.0 pkg/util/hardware/hw_utils.go
 */
export async function readHostNodes(vmi: Vmi, { Devices }: DomainSpec, sysDir = '/sys'): Promise<HostNodes> {
  const nodes = new Map<string, HostNode>();
  if (!hasNumaPassthrough(vmi) && !hasDedicatedCpus(vmi)) return nodes;
  for (const { Source } of Devices.HostDevices ?? []) {
    if (Source?.Address?.Bus === undefined) continue;
    const address = renderPciAddress(Source.Address);
    const found = await readHostNode(address, sysDir);
    if (found !== undefined) nodes.set(address, found);
  }
  return nodes;
}

async function readHostNode(address: string, sysDir: string): Promise<HostNode | undefined> {
  try {
    const node = Number(await readFile(join(sysDir, 'bus/pci/devices', address, 'numa_node'), 'utf8'));
    if (!Number.isInteger(node) || node < 0) return undefined;
    const cpus = await readFile(join(sysDir, `bus/node/devices/node${String(node)}/cpulist`), 'utf8');
    return { node, cpus: parseCpuSet(cpus.trim()) };
  } catch {
    return undefined;
  }
}
