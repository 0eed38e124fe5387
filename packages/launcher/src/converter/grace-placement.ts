import type { DomainController, DomainHostDevice, DomainNUMACell, DomainSpec } from '@virtwire/vm-model';

import { LauncherError } from '../errors.ts';
import type { HostPciFacts, HostTopology } from './circumstances.ts';
import { type Placeable, placeOnExpanderBuses } from './expander-buses.ts';
import type { GraceHostFacts, Known } from './grace-facts.ts';
import { guestCellOf, sortedPciDevices } from './numa-placement.ts';
import { renderPciAddress } from './pci-address.ts';

const NVIDIA = '10DE';
const GRACE_GPUS: ReadonlySet<string> = new Set(['2342', '2348', '2941']);
const INITIATORS_PER_GPU = 8;
const MIN_HOLE_BYTES = 512n << 30n;
const HOLE_MARGIN_KIB = 1n << 20n;
const MAX_HOLE_KIB = 16n << 30n;
const MAX_UINT64 = (1n << 64n) - 1n;
const LOCAL_DISTANCE = 10;
/** What today's Grace systems can do; the kernel does not tell it. */
const SMMU_DRIVER = { Accel: 'on', ATS: 'on', RIL: 'off', SSIDSize: '20', OAS: '48' };

interface GraceGpu {
  readonly alias: string;
  readonly address: string;
  readonly device: DomainHostDevice;
}

/** What the placement reads of the host. */
export interface GraceHost {
  readonly facts: GraceHostFacts;
  readonly pciDevices: ReadonlyMap<string, HostPciFacts>;
  readonly topology: HostTopology | undefined;
}

/**
 * Gives each Grace GPU the machine that its driver expects: an expander bus and an SMMU of its own, eight NUMA cells
 * without memory for its Generic Initiators, the host's NUMA distances, and a PCI hole that holds its memory.
 *
 * @param aliases of the GPUs among the domain's host devices.
 * @throws {LauncherError} `ConvertFailed`, with KubeVirt's words, when host or domain lack something.
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/converter/grace.go
 */
export function placeGraceDevices(spec: DomainSpec, aliases: readonly string[], host: GraceHost): void {
  const hasSmmu = found(host.facts.hasSmmuV3, 'failed to verify SMMUv3 availability for GraceIOVirtualization');
  if (!hasSmmu) throw refused('GraceIOVirtualization requires SMMUv3 on the host');
  const gpus = findGpus(spec, aliases, host.facts);
  if (gpus.length === 0) return;
  const hostNodes = hostNodesOfCells(spec);
  const cellOfNode = invert(hostNodes);
  const initiators = initiatorNodes(gpus, host.facts);
  let hole = 0n;
  const cells = new Map<DomainHostDevice, number>();
  for (const [index, gpu] of gpus.entries()) {
    cells.set(gpu.device, cellOf(gpu, host.facts, cellOfNode));
    hole += holeBytes(gpu, host.facts, hole);
    addInitiatorCells(spec, gpu.device, initiators[index] ?? [], hostNodes);
  }
  const root = rootController(spec);
  placeOnExpanderBuses(spec, placeables(spec, cells, host));
  root.PCIHole64 = { Value: holeKiB(hole), Unit: 'KiB' };
  setDistances(spec, hostNodes, host.facts);
}

function refused(message: string): LauncherError {
  return new LauncherError('ConvertFailed', message);
}

function found<T>(fact: Known<T>, doing: string): T {
  if ('failure' in fact) throw refused(`${doing}: ${fact.failure}`);
  return fact.value;
}

function factsOf(address: string, facts: GraceHostFacts): NonNullable<ReturnType<GraceHostFacts['devices']['get']>> {
  const failure = { failure: `open /sys/bus/pci/devices/${address}: no such file or directory` };
  return (
    facts.devices.get(address) ?? { identity: failure, numaNode: failure, barBytes: failure, initiatorNodes: failure }
  );
}

/** The GPUs in the order of their aliases, each one looked at. */
function findGpus(spec: DomainSpec, aliases: readonly string[], facts: GraceHostFacts): readonly GraceGpu[] {
  const expected = new Set(aliases.filter((alias) => alias !== ''));
  const gpus = (spec.Devices.HostDevices ?? []).flatMap((device) => {
    const alias = device.Alias?.Name ?? '';
    return expected.has(alias) ? [verified(alias, device, facts)] : [];
  });
  const missing = [...expected].filter((alias) => !gpus.some((gpu) => gpu.alias === alias)).sort();
  if (missing.length > 0) {
    throw refused(
      `GraceIOVirtualization expected hostdev aliases ${missing.join(', ')}, but no matching host devices were assigned`,
    );
  }
  return gpus.sort((a, b) => (a.alias < b.alias ? -1 : 1));
}

function verified(alias: string, device: DomainHostDevice, facts: GraceHostFacts): GraceGpu {
  const name = JSON.stringify(alias);
  if (device.Type !== 'pci') {
    throw refused(`GraceIOVirtualization requires PCI hostdev ${name}, got ${JSON.stringify(device.Type ?? '')}`);
  }
  const source = device.Source?.Address;
  if (source === undefined) {
    throw refused(`GraceIOVirtualization requires assigned PCI source address for hostdev ${name}`);
  }
  if (device.Address !== undefined) {
    throw refused(`GraceIOVirtualization does not support explicit guest PCI address on hostdev ${name}`);
  }
  const address = renderPciAddress(source);
  const { identity } = factsOf(address, facts);
  const { vendor, device: model } = found(
    identity,
    `failed to read PCI identity for Grace hostdev ${name} at ${address}`,
  );
  if (normalId(vendor) !== NVIDIA || !GRACE_GPUS.has(normalId(model))) {
    throw refused(
      `GraceIOVirtualization expected hostdev ${name} at ${address} to be a supported NVIDIA Grace GPU, ` +
        `got vendor ${normalId(vendor)} device ${normalId(model)}`,
    );
  }
  return { alias, address, device };
}

function normalId(id: string): string {
  return id.trim().toUpperCase().replace(/^0X/, '');
}

/** The host node of each guest cell that has processors or memory. */
function hostNodesOfCells(spec: DomainSpec): Map<number, number> {
  const cells = spec.CPU.NUMA?.Cells ?? [];
  if (cells.length === 0) throw refused('GraceIOVirtualization requires guest NUMA cells');
  const nodes = spec.NUMATune?.MemNodes ?? [];
  if (nodes.length === 0) {
    throw refused('GraceIOVirtualization requires NUMATune memnodes to map guest NUMA cells to host NUMA nodes');
  }
  const hostNodes = new Map(nodes.map(({ CellID = 0, NodeSet = '' }) => [CellID, Number(NodeSet)]));
  const unmapped = cells.map(({ ID }) => Number(ID)).find((id) => !hostNodes.has(id));
  if (unmapped !== undefined) {
    throw refused(`GraceIOVirtualization requires NUMATune memnode mapping for guest NUMA cell ${String(unmapped)}`);
  }
  return hostNodes;
}

function invert(hostNodes: ReadonlyMap<number, number>): ReadonlyMap<number, number> {
  const cells = new Map<number, number>();
  for (const [cell, node] of hostNodes) {
    const other = cells.get(node);
    if (other !== undefined) {
      throw refused(
        `host NUMA node ${String(node)} maps to multiple guest NUMA cells (${String(other)} and ${String(cell)})`,
      );
    }
    cells.set(node, cell);
  }
  return cells;
}

/** Eight host nodes for each GPU: those that name it, or where none is named the next eight. */
function initiatorNodes(gpus: readonly GraceGpu[], facts: GraceHostFacts): readonly (readonly number[])[] {
  const named = gpus.map(({ alias, address }) => {
    const doing = `failed to discover Grace Generic Initiator NUMA nodes for hostdev ${JSON.stringify(alias)} at ${address}`;
    return [...found(factsOf(address, facts).initiatorNodes, doing)].sort((a, b) => a - b);
  });
  if (named.some((nodes) => nodes.length > 0)) return checkedInitiators(gpus, named);
  const all = found(facts.initiatorNodes, 'failed to discover Grace Generic Initiator NUMA nodes');
  const needed = gpus.length * INITIATORS_PER_GPU;
  if (all.length < needed) {
    throw refused(
      `GraceIOVirtualization requires ${String(needed)} host Generic Initiator NUMA nodes for ${String(gpus.length)} ` +
        `Grace GPU(s), found ${String(all.length)}`,
    );
  }
  return gpus.map((_gpu, index) => all.slice(index * INITIATORS_PER_GPU, (index + 1) * INITIATORS_PER_GPU));
}

function checkedInitiators(
  gpus: readonly GraceGpu[],
  named: readonly (readonly number[])[],
): readonly (readonly number[])[] {
  const owners = new Map<number, string>();
  for (const [index, { alias, address }] of gpus.entries()) {
    const nodes = named[index] ?? [];
    if (nodes.length !== 0 && nodes.length !== INITIATORS_PER_GPU) {
      throw refused(
        `GraceIOVirtualization requires exactly ${String(INITIATORS_PER_GPU)} host Generic Initiator NUMA nodes for ` +
          `hostdev ${JSON.stringify(alias)} at ${address}, found ${String(nodes.length)}`,
      );
    }
    for (const node of nodes) {
      const owner = owners.get(node);
      if (owner !== undefined) {
        throw refused(
          `Grace Generic Initiator NUMA node ${String(node)} is associated with multiple Grace hostdevs ` +
            `(${owner} and ${alias})`,
        );
      }
      owners.set(node, alias);
    }
  }
  const without = gpus.filter((_gpu, index) => named[index]?.length === 0);
  if (without.length > 0) {
    throw refused(
      'Grace Generic Initiator NUMA nodes were correlated for some but not all Grace hostdevs; ' +
        `missing correlations for ${without.map(({ alias, address }) => `${alias} at ${address}`).join(', ')}`,
    );
  }
  return named;
}

function cellOf({ alias, address }: GraceGpu, facts: GraceHostFacts, cellOfNode: ReadonlyMap<number, number>): number {
  const name = JSON.stringify(alias);
  const doing = `failed to read NUMA node for Grace hostdev ${name} at ${address}`;
  const node = found(factsOf(address, facts).numaNode, doing);
  const cell = cellOfNode.get(node);
  if (cell !== undefined) return cell;
  throw refused(
    `Grace hostdev ${name} is on host NUMA node ${String(node)}, but no guest NUMA cell maps to that host node`,
  );
}

function holeBytes({ alias, address }: GraceGpu, facts: GraceHostFacts, sum: bigint): bigint {
  const name = JSON.stringify(alias);
  const bars = found(
    factsOf(address, facts).barBytes,
    `failed to calculate pcihole64 for Grace hostdev ${name} at ${address}`,
  );
  if (bars === 0n) {
    throw refused(`Grace hostdev ${name} at ${address} has no 64-bit prefetchable PCI BARs for pcihole64 sizing`);
  }
  const bytes = bars < MIN_HOLE_BYTES ? MIN_HOLE_BYTES : bars;
  if (sum + bytes > MAX_UINT64) {
    throw refused(`Grace pcihole64 size overflows while adding hostdev ${name} at ${address}`);
  }
  return bytes;
}

/** The next power of two that holds all GPUs and a margin. */
function holeKiB(bytes: bigint): number {
  const wanted = (bytes + 1023n) / 1024n + HOLE_MARGIN_KIB;
  let size = 1n;
  while (size < wanted) size <<= 1n;
  if (size > MAX_HOLE_KIB) throw refused(`invalid Grace pcihole64 size ${String(size)} KiB`);
  return Number(size);
}

/** Cells without memory and processors, which the guest fills with the memory of the GPU. */
function addInitiatorCells(
  spec: DomainSpec,
  device: DomainHostDevice,
  nodes: readonly number[],
  hostNodes: Map<number, number>,
): void {
  const cells: DomainNUMACell[] = spec.CPU.NUMA?.Cells ?? [];
  const first = Math.max(...cells.map(({ ID }) => Number(ID))) + 1;
  const added = nodes.map((node, index) => {
    hostNodes.set(first + index, node);
    return { ID: String(first + index), Memory: 0, Unit: 'KiB' };
  });
  spec.CPU.NUMA = { ...spec.CPU.NUMA, Cells: [...cells, ...added] };
  device.Driver = { Iommufd: 'yes' };
  device.ACPI = { NodeSet: `${String(first)}-${String(first + nodes.length - 1)}` };
}

function rootController(spec: DomainSpec): DomainController {
  const controllers = (spec.Devices.Controllers ??= []);
  const first = controllers.find(({ Type, Index }) => Type === 'pci' && Index === '0');
  if (first !== undefined && first.Model !== 'pcie-root') {
    throw refused(
      `GraceIOVirtualization requires PCI controller index 0 to be pcie-root, found model ${JSON.stringify(first.Model ?? '')}`,
    );
  }
  if (first?.PCIHole64?.Value === 0) {
    throw refused('GraceIOVirtualization conflicts with disabled pcihole64 on the PCIe root controller');
  }
  if (first !== undefined) return first;
  const root: DomainController = { Type: 'pci', Index: '0', Model: 'pcie-root' };
  controllers.push(root);
  return root;
}

function placeables(spec: DomainSpec, cells: ReadonlyMap<DomainHostDevice, number>, host: GraceHost): Placeable[] {
  // A device that is no Grace GPU and has no place stays where libvirt puts it.
  return sortedPciDevices(spec, []).flatMap(({ address, device }): Placeable[] => {
    const ofGpu = cells.get(device);
    if (ofGpu !== undefined) {
      return [{ address, device, cell: ofGpu, iommu: { Model: 'smmuv3', Driver: { ...SMMU_DRIVER } } }];
    }
    const cell = guestCellOf(address, spec, host.pciDevices, host.topology);
    return typeof cell === 'number' ? [{ address, device, cell }] : [];
  });
}

function setDistances(spec: DomainSpec, hostNodes: ReadonlyMap<number, number>, facts: GraceHostFacts): void {
  const siblings = [...hostNodes.keys()].sort((a, b) => a - b);
  for (const cell of spec.CPU.NUMA?.Cells ?? []) {
    const node = hostNodes.get(Number(cell.ID));
    if (node === undefined) continue;
    const failure = {
      failure: `open /sys/devices/system/node/node${String(node)}/distance: no such file or directory`,
    };
    const distances = found(
      facts.distances.get(node) ?? failure,
      `failed to read host NUMA distances for node ${String(node)}`,
    );
    cell.Distances = {
      Siblings: siblings.map((id) => {
        const other = hostNodes.get(id) ?? 0;
        const distance = distances.get(other);
        if (distance === undefined) {
          throw refused(`missing host NUMA distance from node ${String(node)} to node ${String(other)}`);
        }
        // Host nodes of one GPU may be as near to each other as to themselves; in a guest only a cell itself is.
        const isOther = id !== Number(cell.ID);
        return { ID: String(id), Value: isOther && distance === LOCAL_DISTANCE ? LOCAL_DISTANCE + 1 : distance };
      }),
    };
  }
}
