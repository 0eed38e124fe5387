import type { DomainHostDevice, Vmi, VmiInterface } from '@virtwire/vm-model';

import { LauncherError, textOf } from '../errors.ts';
import type { Circumstances } from './circumstances.ts';
import { pciHostDevice } from './host-device-pools.ts';
import { parsePciAddress } from './pci-address.ts';

const MULTUS_STATUS = 'multus-status';

/**
 * Virtual functions for the SR-IOV interfaces that the pod has, by the pod's network-info.
 *
 * @throws {LauncherError} `ConvertFailed` when a network has no address.
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/device/hostdevice/sriov/hostdev.go
 */
export function sriovHostDevices(
  vmi: Vmi,
  circumstances: Pick<Circumstances, 'isMigrationTarget' | 'networkInfo'>,
): readonly DomainHostDevice[] {
  if (circumstances.isMigrationTarget) return [];
  const interfaces = podSriovInterfaces(vmi);
  if (interfaces.length === 0) return [];
  const addresses = new Map<string, string>();
  for (const { network, pciAddress } of circumstances.networkInfo) {
    if (pciAddress !== undefined) addresses.set(network, pciAddress);
  }
  if (addresses.size === 0) {
    throw new LauncherError('ConvertFailed', 'found no SR-IOV networks to PCI-Address mapping');
  }
  return interfaces.map((iface) => {
    try {
      return sriovHostDevice(iface, addresses.get(iface.name));
    } catch (error) {
      throw LauncherError.from(error, 'ConvertFailed', `failed to create hostdevice for ${iface.name}: `);
    }
  });
}

/** SR-IOV interfaces whose networks the pod has. */
export function podSriovInterfaces(vmi: Vmi): readonly VmiInterface[] {
  return (vmi.spec.domain.devices.interfaces ?? []).filter(
    (iface) => iface.sriov !== undefined && isInPod(vmi, iface.name),
  );
}

/** Puts a virtual function where its interface wants it in the guest. */
export function withGuestPlace(device: DomainHostDevice, iface: VmiInterface): DomainHostDevice {
  if (iface.pciAddress !== undefined && iface.pciAddress !== '') device.Address = guestAddress(iface.pciAddress);
  if (iface.bootOrder !== undefined) device.BootOrder = { Order: iface.bootOrder };
  return device;
}

function sriovHostDevice(iface: VmiInterface, address: string | undefined): DomainHostDevice {
  if (address === undefined) {
    throw new LauncherError('ConvertFailed', `PCI-Address for SR-IOV network "${iface.name}" not found`);
  }
  return withGuestPlace(pciHostDevice(iface.name, `sriov-${iface.name}`, address), iface);
}

function guestAddress(address: string): DomainHostDevice['Address'] {
  try {
    return parsePciAddress(address);
  } catch (error) {
    throw new LauncherError('ConvertFailed', `failed to interpret the guest PCI address: ${textOf(error)}`, {
      cause: error,
    });
  }
}

function isInPod(vmi: Vmi, name: string): boolean {
  const status = vmi.status?.interfaces?.find((iface) => iface.name === name);
  return (
    status?.infoSource
      ?.split(', ')
      .flatMap((part) => part.split(','))
      .includes(MULTUS_STATUS) ?? false
  );
}
