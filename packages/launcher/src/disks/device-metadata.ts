import type { DomainAddress, DomainHostDevice, DomainSpec, Vmi } from '@virtwire/vm-model';

import { nonEmpty } from '../converter/non-empty.ts';
import { renderPciAddress } from '../converter/pci-address.ts';
import { hasNumaPassthrough } from '../converter/vmi-traits.ts';
import type { HostNodes } from './host-nodes.ts';

/** A device that the user tagged, as cloud-init's metadata names it to the guest. */
export interface TaggedDevice {
  readonly type: 'nic' | 'hostdev';
  readonly bus: 'pci';
  /** `0000:02:00.0` */
  readonly address: string;
  readonly mac?: string;
  /** The host's node that the device is attached to, where the guest sees the host's nodes; node 0 is not told. */
  readonly numaNode?: number;
  /** vCPUs that run beside the device, where each has a host CPU of its own. */
  readonly alignedCPUs?: readonly number[];
  readonly tags: readonly string[];
}

/** Whether the user tagged any device that cloud-init's metadata can name. */
export function hasTaggedDevices(vmi: Vmi): boolean {
  const { interfaces = [], hostDevices = [], gpus = [] } = vmi.spec.domain.devices;
  return [...interfaces, ...hostDevices, ...gpus].some(({ tag }) => nonEmpty(tag) !== undefined);
}

/**
 * Tagged network cards and host devices with the PCI addresses that libvirt gave them, in the domain's order. One without
 * an address is left out (the model crashes on it).
 *
 * @param hostNodes where the devices are attached on the host.
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/manager.go, buildDevicesMetadata
 */
export function taggedDevices(vmi: Vmi, defined: DomainSpec, hostNodes: HostNodes): readonly TaggedDevice[] {
  const { interfaces, hostDevices, gpus } = vmi.spec.domain.devices;
  const cards = tagsOf('', interfaces);
  const functions = tagsOf('sriov-', interfaces);
  const others = new Map([...tagsOf('hostdevice-', hostDevices), ...tagsOf('gpu-', gpus)]);
  const { Interfaces = [], HostDevices = [] } = defined.Devices;
  return [
    ...Interfaces.flatMap(({ Alias, Address, MAC }) => {
      const mac = nonEmpty(MAC?.MAC);
      return described('nic', cards.get(Alias?.Name ?? ''), Address, mac === undefined ? {} : { mac });
    }),
    ...HostDevices.flatMap((device) => {
      const name = device.Alias?.Name ?? '';
      const place = placeOf(vmi, defined, device, hostNodes);
      return [
        ...described('nic', functions.get(name), device.Address, place),
        ...described('hostdev', others.get(name), device.Address, place),
      ];
    }),
  ];
}

/** Tags by the alias of the device in the domain. */
function tagsOf(
  prefix: string,
  devices: readonly { readonly name: string; readonly tag?: string }[] = [],
): ReadonlyMap<string, string> {
  return new Map(devices.flatMap(({ name, tag }) => (tag ? [[`${prefix}${name}`, tag] as const] : [])));
}

type Details = Pick<TaggedDevice, 'mac' | 'numaNode' | 'alignedCPUs'>;

function described(
  type: TaggedDevice['type'],
  tag: string | undefined,
  address: DomainAddress | undefined,
  details: Details,
): readonly TaggedDevice[] {
  if (tag === undefined || address?.Type !== 'pci') return [];
  return [{ type, bus: 'pci', address: renderPciAddress(address), ...details, tags: [tag] }];
}

function placeOf(
  vmi: Vmi,
  { CPUTune }: DomainSpec,
  { Source }: DomainHostDevice,
  hostNodes: HostNodes,
): Pick<TaggedDevice, 'numaNode' | 'alignedCPUs'> {
  const found = Source?.Address === undefined ? undefined : hostNodes.get(renderPciAddress(Source.Address));
  if (found === undefined) return {};
  if (hasNumaPassthrough(vmi)) return found.node === 0 ? {} : { numaNode: found.node };
  const vcpus = new Map((CPUTune?.VCPUPin ?? []).map(({ VCPU = 0, CPUSet = '' }) => [CPUSet, VCPU]));
  const alignedCPUs = found.cpus.flatMap((cpu) => vcpus.get(String(cpu)) ?? []);
  return alignedCPUs.length === 0 ? {} : { alignedCPUs };
}
