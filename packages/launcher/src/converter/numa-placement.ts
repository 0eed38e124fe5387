import type { DomainHostDevice, DomainSpec } from '@virtwire/vm-model';

import { LauncherError, textOf } from '../errors.ts';
import type { HostPciFacts, HostTopology } from './circumstances.ts';
import { parseCpuSet } from './cpu-set.ts';
import { type Placeable, placeOnExpanderBuses } from './expander-buses.ts';
import { renderPciAddress } from './pci-address.ts';

/**
 * Puts passed-through PCI devices behind an expander bus of the guest NUMA cell that lies on the device's host node.
 * A device that cannot be placed stays where libvirt puts it; strict placement refuses it instead.
 *
 * @throws {LauncherError} `ConvertFailed` when strict placement is impossible.
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/converter/pci-placement.go
 */
export function placeOnHostNuma(
  spec: DomainSpec,
  host: ReadonlyMap<string, HostPciFacts>,
  topology: HostTopology | undefined,
  isStrict: boolean,
): void {
  const failures: string[] = [];
  const placeable: Placeable[] = [];
  for (const device of sortedPciDevices(spec, failures)) {
    const cell = guestCellOf(device.address, spec, host, topology);
    if (typeof cell === 'number') placeable.push({ ...device, cell });
    else failures.push(`device ${device.address} cannot be placed on a NUMA-aware PCIe topology: ${cell}`);
  }
  if (isStrict && failures.length > 0) {
    throw strictError(`strict PCI NUMA-aware placement failed: ${failures.join('; ')}`);
  }
  try {
    placeOnExpanderBuses(spec, placeable);
  } catch (error) {
    if (isStrict) throw strictError(textOf(error));
  }
}

/**
 * PCI host devices without a place in the guest, in the order of their host addresses.
 *
 * @param failures takes why others were passed over.
 */
export function sortedPciDevices(
  spec: DomainSpec,
  failures: string[],
): readonly { readonly address: string; readonly device: DomainHostDevice }[] {
  const result: { address: string; device: DomainHostDevice }[] = [];
  for (const device of spec.Devices.HostDevices ?? []) {
    if (device.Type !== 'pci') continue;
    const source = device.Source?.Address;
    if (source === undefined) {
      failures.push('PCI host device has no source address, skipping pcie-expander-bus assignment');
      continue;
    }
    const address = renderPciAddress(source);
    const guest = device.Address;
    if (guest?.Domain || guest?.Bus || guest?.Slot || guest?.Function) {
      failures.push(`device ${address} already has a guest PCI address, skipping pcie-expander-bus assignment`);
      continue;
    }
    result.push({ address, device });
  }
  return result.sort((a, b) => (a.address < b.address ? -1 : 1));
}

/** The guest cell on the device's host node: by memory binding, else through a vCPU pinned there; a text is the reason. */
export function guestCellOf(
  address: string,
  spec: DomainSpec,
  host: ReadonlyMap<string, HostPciFacts>,
  topology: HostTopology | undefined,
): number | string {
  const node = host.get(address)?.numaNode;
  if (node === undefined) return 'no guest NUMA node mapping is available';
  const bound = (spec.NUMATune?.MemNodes ?? []).filter(({ NodeSet }) => NodeSet === String(node));
  if (bound.length === 1) return bound[0]?.CellID ?? 0;
  return cellOfPinnedVcpu(node, spec, topology) ?? 'no guest NUMA node mapping is available';
}

function cellOfPinnedVcpu(node: number, spec: DomainSpec, topology: HostTopology | undefined): number | undefined {
  const hostCpus = new Set(topology?.numaCells.find(({ id }) => id === node)?.cpus.map(({ id }) => id));
  const pin = spec.CPUTune?.VCPUPin?.find(({ CPUSet = '' }) => hostCpus.has(Number(CPUSet)));
  if (pin === undefined) return undefined;
  const cell = spec.CPU.NUMA?.Cells?.find(({ CPUs = '' }) => parseCpuSet(CPUs).includes(pin.VCPU ?? 0));
  return cell === undefined ? undefined : Number(cell.ID);
}

function strictError(reason: string): LauncherError {
  return new LauncherError('ConvertFailed', `failed to process strict PCIe NUMA-aware topology: ${reason}`);
}
