import type { DomainAddress, DomainSpec } from '@virtwire/vm-model';

import { LauncherError } from '../errors.ts';

/** Controllers that are no device on a PCI bus themselves. */
const BUS_ROOTS = new Set(['pci-root', 'pcie-root', 'pcie-expander-bus']);
const LAST_SLOT = 0x1f;
/** Slots that QEMU keeps: 0x1b for sound, 0x1f for SATA. 0 and 1 are the host bridge and the screen. */
const RESERVED_SLOTS = new Set([0x1b, 0x1f]);
const FIRST_SLOT = 2;

interface Addressed {
  Address?: DomainAddress | undefined;
}

/**
 * The devices of a domain that take a PCI address, in the order in which the model walks them.
 *
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/converter/pci-placement.go, iteratePCIAddresses
 */
export function pciDevices(spec: DomainSpec): readonly Addressed[] {
  const { Devices } = spec;
  const devices: (Addressed | undefined)[] = [
    ...(Devices.Interfaces ?? []),
    ...(Devices.HostDevices ?? []).filter(({ Type }) => Type === 'pci'),
    ...(Devices.Controllers ?? []).filter(({ Model }) => !BUS_ROOTS.has(Model ?? '')),
    ...(Devices.Disks ?? []).filter(({ Target }) => Target?.Bus === 'virtio'),
    ...(Devices.Inputs ?? []).filter(({ Bus }) => Bus === 'virtio'),
    ...(Devices.Watchdogs ?? []),
    Devices.Rng,
    Devices.Ballooning,
  ];
  return devices.filter((device) => device !== undefined && isPci(device.Address)) as Addressed[];
}

/**
 * Puts every PCI device that has no address onto the root bus.
 *
 * @throws {LauncherError} `ConvertFailed` when the bus is full.
 */
export function placeOnRootComplex(spec: DomainSpec): void {
  let slot = FIRST_SLOT;
  for (const device of pciDevices(spec)) {
    if (device.Address?.Domain) continue;
    while (RESERVED_SLOTS.has(slot)) slot++;
    if (slot > LAST_SLOT) throw new LauncherError('ConvertFailed', 'No space left on the root PCI bus.');
    device.Address = {
      ...device.Address,
      Type: 'pci',
      Domain: '0x0000',
      Bus: '0x00',
      Slot: `0x${slot.toString(16).padStart(2, '0')}`,
      Function: '0x0',
    };
    slot++;
  }
}

function isPci(address: DomainAddress | undefined): boolean {
  return address?.Type === undefined || address.Type === '' || address.Type === 'pci';
}
