import type { DomainAddress, DomainController, DomainInterface, DomainSpec, Vmi } from '@virtwire/vm-model';
import { LauncherError } from '../errors.ts';

const SLOT_COUNT_ANNOTATION = 'kubevirt.io/pci-interface-slot-count';
const ROOT_COMPLEX_ANNOTATION = 'kubevirt.io/placePCIDevicesOnRootComplex';
/** Interfaces that a VM with a network can have altogether without a restart. */
const INTERFACE_SLOTS = 4;
const LARGE_MEMORY_BYTES = 2n * 1024n ** 3n;
/** Highest index of a PCI controller that QEMU takes. */
const MAX_CONTROLLER_INDEX = 31;
const NOT_A_DEVICE = new Set(['pci-root', 'pcie-root', 'pcie-expander-bus']);

/** Ports that a domain gets beside those of its own devices, so that devices can be plugged in later. */
export interface HotplugPorts {
  /** Interfaces that are defined once and taken away again, which leaves their root ports. */
  readonly placeholders: number;
  /** Root ports defined as such. */
  readonly controllers: number;
}

/**
 * True when the domain's machine has PCIe, so that ports can be kept free. No machine type counts as PCIe.
 *
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/manager.go:1655
 */
export function supportsHotplugPorts(vmi: Vmi, spec: DomainSpec): boolean {
  const architecture = vmi.spec.architecture ?? '';
  if (!['', 'amd64', 'arm64'].includes(architecture)) return false;
  const machine = spec.OS.Type?.Machine ?? '';
  return machine === '' || machine.includes('q35') || machine.startsWith('virt');
}

function onPci(address: DomainAddress | undefined): boolean {
  return address === undefined || (address.Type ?? '') === '' || address.Type === 'pci';
}

function countPciDevices({ Devices }: DomainSpec): number {
  const addressed: readonly (readonly { Address?: DomainAddress | undefined }[])[] = [
    Devices.Interfaces ?? [],
    (Devices.HostDevices ?? []).filter((device) => device.Type === 'pci'),
    (Devices.Controllers ?? []).filter((controller) => !NOT_A_DEVICE.has(controller.Model ?? '')),
    (Devices.Disks ?? []).filter((disk) => disk.Target?.Bus === 'virtio'),
    (Devices.Inputs ?? []).filter((input) => input.Bus === 'virtio'),
    Devices.Watchdogs ?? [],
    Devices.Rng === undefined ? [] : [Devices.Rng],
    Devices.Ballooning === undefined ? [] : [Devices.Ballooning],
  ];
  return addressed.flat().filter((device) => onPci(device.Address)).length;
}

const UNIT_BYTES: Readonly<Record<string, bigint>> = {
  b: 1n,
  bytes: 1n,
  KiB: 1024n,
  MiB: 1024n ** 2n,
  GiB: 1024n ** 3n,
};

function memoryBytes({ Memory }: DomainSpec): bigint {
  return BigInt(Memory.Value ?? 0) * (UNIT_BYTES[Memory.Unit ?? ''] ?? 1n);
}

function countPlaceholders(vmi: Vmi, interfaces: number): number {
  const wanted = vmi.metadata.annotations?.[SLOT_COUNT_ANNOTATION];
  if (wanted !== undefined) {
    if (!/^[+-]?\d+$/.test(wanted)) {
      throw new LauncherError('SyncFailed', `strconv.Atoi: parsing ${JSON.stringify(wanted)}: invalid syntax`);
    }
    return Math.max(0, Number(wanted) - interfaces);
  }
  if (vmi.metadata.annotations?.[ROOT_COMPLEX_ANNOTATION] === 'true' || interfaces === 0) return 0;
  return Math.max(0, INTERFACE_SLOTS - interfaces);
}

/**
 * How many ports to keep free.
 *
 * @throws {LauncherError} `SyncFailed` when the VMI's slot count annotation is no number
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/manager.go:1690
 */
export function decideHotplugPorts(vmi: Vmi, spec: DomainSpec): HotplugPorts {
  const interfaces = vmi.spec.domain.devices.interfaces?.length ?? 0;
  const placeholders = countPlaceholders(vmi, interfaces);
  if (vmi.metadata.annotations?.[ROOT_COMPLEX_ANNOTATION] === 'true') return { placeholders, controllers: 0 };
  const [total, minFree] = memoryBytes(spec) > LARGE_MEMORY_BYTES ? [16, 6] : [8, 3];
  const wanted = Math.max(total - countPciDevices(spec), minFree);
  return { placeholders, controllers: Math.max(0, wanted - placeholders) };
}

/** The domain with placeholder interfaces behind its own. */
export function withPlaceholders(spec: DomainSpec, count: number, virtioModel: string): DomainSpec {
  const placeholders = Array.from({ length: count }, (_, i): DomainInterface => {
    const name = `placeholder-${i}`;
    return {
      XMLName: { Space: '', Local: '' },
      Type: 'ethernet',
      Source: {},
      Model: { Type: virtioModel },
      Target: { Device: name, Managed: 'no' },
      Alias: { Name: name, UserDefined: false },
    };
  });
  return { ...spec, Devices: { ...spec.Devices, Interfaces: [...(spec.Devices.Interfaces ?? []), ...placeholders] } };
}

/** The domain with the devices that libvirt completed, but only its own interfaces. */
export function withCompletedDevices(spec: DomainSpec, completed: DomainSpec): DomainSpec {
  return { ...spec, Devices: { ...completed.Devices, Interfaces: spec.Devices.Interfaces } };
}

/** The domain with root ports behind its PCI controllers; fewer than asked for when the indices run out. */
export function withRootPorts(spec: DomainSpec, count: number): DomainSpec {
  const before = spec.Devices.Controllers ?? [];
  const indices = before.filter((c) => c.Type === 'pci').map((c) => Number(c.Index ?? 0));
  const first = Math.max(0, ...indices.filter(Number.isFinite)) + 1;
  const last = Math.min(first + count - 1, MAX_CONTROLLER_INDEX);
  const ports: DomainController[] = [];
  for (let index = first; index <= last; index++) {
    ports.push({ Type: 'pci', Index: String(index), Model: 'pcie-root-port' });
  }
  return { ...spec, Devices: { ...spec.Devices, Controllers: [...before, ...ports] } };
}

/** Target device name (`vda`, `tap0`) to alias, for statistics. */
export function aliasesOf({ Devices }: DomainSpec): ReadonlyMap<string, string> {
  const named = [...(Devices.Interfaces ?? []), ...(Devices.Disks ?? [])];
  return new Map(
    named.flatMap(({ Target, Alias }) =>
      Target?.Device === undefined || Alias?.Name === undefined ? [] : [[Target.Device, Alias.Name] as const],
    ),
  );
}
