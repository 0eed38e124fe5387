import type { DomainAddress } from '@virtwire/vm-model';

import { LauncherError } from '../errors.ts';

const PCI_ADDRESS = /^([0-9a-fA-F]{4}):([0-9a-fA-F]{2}):([0-9a-fA-F]{2})\.([0-7])$/;

/**
 * Parses `0000:81:01.0` into the form of libvirt's `<address type="pci">`.
 *
 * @throws {LauncherError} `ConvertFailed` when it is no PCI address.
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/device/address.go
 */
export function parsePciAddress(text: string): DomainAddress {
  const parts = PCI_ADDRESS.exec(text);
  if (parts === null) throw new LauncherError('ConvertFailed', `failed to parse pci address ${text}`);
  const [, domain, bus, slot, fn] = parts;
  return {
    Type: 'pci',
    Domain: `0x${domain ?? ''}`,
    Bus: `0x${bus ?? ''}`,
    Slot: `0x${slot ?? ''}`,
    Function: `0x${fn ?? ''}`,
  };
}

/** A PCI address of libvirt's form as `0000:81:01.0`. */
export function renderPciAddress(address: DomainAddress): string {
  const digits = (text: string | undefined): string => (text ?? '').replace(/^0x/, '');
  return `${digits(address.Domain)}:${digits(address.Bus)}:${digits(address.Slot)}.${digits(address.Function)}`;
}
