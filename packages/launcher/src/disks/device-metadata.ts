import type { DomainAddress, DomainSpec, Vmi } from '@virtwire/vm-model';

import { nonEmpty } from '../converter/non-empty.ts';
import { renderPciAddress } from '../converter/pci-address.ts';

/** A device that the user tagged, as cloud-init's metadata names it to the guest. */
export interface TaggedDevice {
  readonly type: 'nic' | 'hostdev';
  readonly bus: 'pci';
  /** `0000:02:00.0` */
  readonly address: string;
  readonly mac?: string;
  readonly tags: readonly string[];
}

/** Whether the user tagged any device that cloud-init's metadata can name. */
export function hasTaggedDevices(vmi: Vmi): boolean {
  const { interfaces = [], hostDevices = [], gpus = [] } = vmi.spec.domain.devices;
  return [...interfaces, ...hostDevices, ...gpus].some(({ tag }) => nonEmpty(tag) !== undefined);
}

/**
 * Tagged network cards and host devices with the PCI addresses that libvirt gave them. One without an address is left
 * out (the model crashes on it).
 *
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/manager.go, buildDevicesMetadata
 */
export function taggedDevices(vmi: Vmi, defined: DomainSpec): readonly TaggedDevice[] {
  const { interfaces, hostDevices, gpus } = vmi.spec.domain.devices;
  const result: TaggedDevice[] = [];
  const add = (
    type: TaggedDevice['type'],
    tag: string | undefined,
    address: DomainAddress | undefined,
    mac?: string,
  ): void => {
    if (!tag || address?.Type !== 'pci') return;
    result.push({ type, bus: 'pci', address: renderPciAddress(address), ...(mac ? { mac } : {}), tags: [tag] });
  };
  const hostDevice = (alias: string): DomainAddress | undefined =>
    defined.Devices.HostDevices?.find((device) => device.Alias?.Name === alias)?.Address;
  for (const { name, tag, sriov, macAddress } of interfaces ?? []) {
    const card = defined.Devices.Interfaces?.find((iface) => iface.Alias?.Name === name);
    if (sriov === undefined) add('nic', tag, card?.Address, card?.MAC?.MAC);
    else add('nic', tag, hostDevice(`sriov-${name}`), macAddress);
  }
  for (const { name, tag } of hostDevices ?? []) add('hostdev', tag, hostDevice(`hostdevice-${name}`));
  for (const { name, tag } of gpus ?? []) add('hostdev', tag, hostDevice(`gpu-${name}`));
  return result;
}
