import type { DomainController, DomainHostDevice, DomainIOMMUDevice, DomainSpec } from '@virtwire/vm-model';

import { LauncherError } from '../errors.ts';

const MAX_BUS = 255;

/** A PCI host device and the guest cell that it lies on. */
export interface Placeable {
  /** Its address on the host. */
  readonly address: string;
  readonly device: DomainHostDevice;
  readonly cell: number;
  /** Set for a device that gets a bus and an IOMMU of its own. */
  readonly iommu?: DomainIOMMUDevice | undefined;
}

/** An expander bus with the ports and devices behind it. */
interface Bus {
  readonly controllers: DomainController[];
  readonly expander: DomainController;
  readonly ports: Map<DomainHostDevice, DomainController>;
}

/**
 * Puts devices behind expander buses: one for the devices of each guest cell, and one for each device with an IOMMU.
 *
 * @param devices in the order of their host addresses.
 * @throws {LauncherError} `ConvertFailed` when there are not enough bus numbers; the domain is then as before, but for
 * devices that have a bus of their own.
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/converter/pci-placement.go, expanderBusAssigner
 */
export function placeOnExpanderBuses(spec: DomainSpec, devices: readonly Placeable[]): void {
  const buses = new Buses(highestControllerIndex(spec));
  const shared: Bus[] = [];
  for (const cell of [...new Set(devices.map((device) => device.cell))].sort((a, b) => a - b)) {
    const ofCell = devices.filter((device) => device.cell === cell);
    for (const placeable of ofCell.filter(({ iommu }) => iommu !== undefined)) {
      const bus = buses.open(cell);
      buses.add(bus, placeable, 'isolated device');
      buses.close(bus);
      addIommu(spec, placeable, bus);
      apply(spec, bus);
    }
    const others = ofCell.filter(({ iommu }) => iommu === undefined);
    if (others.length === 0) continue;
    const bus = buses.open(cell);
    for (const placeable of others) buses.add(bus, placeable, 'device');
    buses.close(bus);
    shared.push(bus);
  }
  for (const bus of shared) apply(spec, bus);
}

/** Hands out controller indices upwards and bus numbers downwards, which must not meet. */
class Buses {
  #index: number;
  #created = 0;
  #lastBus = MAX_BUS;

  constructor(highestIndex: number) {
    this.#index = highestIndex;
  }

  open(cell: number): Bus {
    const expander = this.#controller('pcie-expander-bus');
    expander.Target = { NUMANode: cell };
    return { expander, controllers: [expander], ports: new Map() };
  }

  add(bus: Bus, { address, device }: Placeable, kind: string): void {
    if (this.#index >= this.#lastBus - 1) {
      throw new LauncherError(
        'ConvertFailed',
        `failed to create PCIe topology with NUMA alignment: failed to place ${kind} ${address}: insufficient bus ` +
          `numbers for NUMA-aligned PCIe topology: current controller index ${String(this.#index)}, ` +
          `last assigned expander bus number ${String(this.#lastBus)}`,
      );
    }
    const port = this.#controller('pcie-root-port');
    const slot = `0x${bus.ports.size.toString(16).padStart(2, '0')}`;
    port.Address = pciAddress(bus.expander.Index ?? '', slot);
    bus.controllers.push(port);
    bus.ports.set(device, port);
  }

  /** The number leaves room for the bus and everything behind it. */
  close(bus: Bus): void {
    this.#lastBus = MAX_BUS - this.#created + 1;
    bus.expander.Target = { BusNr: this.#lastBus, ...bus.expander.Target };
  }

  #controller(model: string): DomainController {
    this.#created += 1;
    this.#index += 1;
    return { Type: 'pci', Index: String(this.#index), Model: model };
  }
}

function addIommu(spec: DomainSpec, { iommu }: Placeable, bus: Bus): void {
  const placed = { ...iommu, Driver: { ...iommu?.Driver, PCIBus: bus.expander.Index } };
  spec.Devices.IOMMU = [...(spec.Devices.IOMMU ?? []), placed];
}

function apply(spec: DomainSpec, bus: Bus): void {
  spec.Devices.Controllers = [...(spec.Devices.Controllers ?? []), ...bus.controllers];
  for (const [device, port] of bus.ports) device.Address = pciAddress(port.Index ?? '', '0x00');
}

function pciAddress(bus: string, slot: string): NonNullable<DomainHostDevice['Address']> {
  return { Type: 'pci', Domain: '0x0000', Bus: bus, Slot: slot, Function: '0x0' };
}

function highestControllerIndex(spec: DomainSpec): number {
  return Math.max(0, ...(spec.Devices.Controllers ?? []).map(({ Index }) => Number(Index ?? 0)));
}
