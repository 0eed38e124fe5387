import {
  type DomainDisk,
  type DomainHostDevice,
  type DomainInterface,
  type DomainSpec,
  domainName,
  emptyDomainSpec,
  findVolume,
  isHotplugVolume,
  quantityValue,
  type Vmi,
  type VmiDisk,
} from '@virtwire/vm-model';

/** What a launcher needs beside the VMI to convert it. */
export interface ConversionOptions {
  /** Attachment of each interface, as the handler sent it; undefined when it sends none. */
  readonly attachments: Readonly<Record<string, string>> | undefined;
}

const SOUND_MODELS: readonly string[] = ['', 'ich9', 'ac97'];
const READY_PHASES: readonly string[] = ['Ready', 'MountedToPod'];
const DEFAULT_MEMORY_KIB = 8_192;

/** The guest agent's channel, which every domain has. */
export const AGENT_CHANNEL = 'org.qemu.guest_agent.0';

/**
 * A small libvirt domain for a VMI: what handlers read of it, not what QEMU would need.
 *
 * @throws {Error} with the converter's text for a specification that it refuses.
 */
export function convertVmi(vmi: Vmi, options: ConversionOptions): DomainSpec {
  const { devices } = vmi.spec.domain;
  const sound = (devices as { readonly sound?: { readonly model?: string } }).sound;
  if (!SOUND_MODELS.includes(sound?.model ?? '')) throw new Error(`invalid model: ${sound?.model ?? ''}`);
  const memoryKiB = memoryOf(vmi);
  return {
    ...emptyDomainSpec(),
    XMLName: { Local: 'domain' },
    Type: 'kvm',
    Name: domainName(vmi.metadata.namespace, vmi.metadata.name),
    UUID: vmi.spec.domain.firmware?.uuid ?? '',
    Memory: { Value: memoryKiB, Unit: 'KiB' },
    CurrentMemory: { Value: memoryKiB, Unit: 'KiB' },
    OS: { Type: { OS: 'hvm', Arch: 'x86_64', Machine: 'pc-q35-rhel9.4.0' }, SMBios: { Mode: 'sysinfo' } },
    Features: vmi.spec.domain.features?.acpi === undefined ? undefined : { ACPI: {} },
    Devices: {
      Emulator: '/usr/libexec/qemu-kvm',
      Interfaces: convertInterfaces(vmi, options, undefined),
      Channels: [{ Type: 'unix', Target: { Name: AGENT_CHANNEL, Type: 'virtio', State: 'disconnected' } }],
      Disks: convertDisks(vmi),
      HostDevices: convertHostDevices(vmi),
    },
    ...convertCpu(vmi),
  };
}

function memoryOf(vmi: Vmi): number {
  const { memory, resources } = vmi.spec.domain;
  const requested = (resources as { readonly requests?: Readonly<Record<string, string>> } | undefined)?.requests;
  const bytes = quantityValue(memory?.guest ?? requested?.['memory']);
  return bytes === 0n ? DEFAULT_MEMORY_KIB : Number(bytes / 1024n);
}

/** vCPUs that a VMI asks for. */
export function vcpusOf(vmi: Vmi): number {
  const cpu = vmi.spec.domain.cpu ?? {};
  return (cpu.sockets ?? 1) * (cpu.cores ?? 1) * (cpu.threads ?? 1);
}

/** vCPUs that a VMI may grow to. */
export function maxVcpusOf(vmi: Vmi): number {
  const cpu = vmi.spec.domain.cpu ?? {};
  return Math.max(vcpusOf(vmi), (cpu.maxSockets ?? 0) * (cpu.cores ?? 1) * (cpu.threads ?? 1));
}

function convertCpu(vmi: Vmi): Pick<DomainSpec, 'CPU' | 'VCPU' | 'VCPUs'> {
  const cpu = vmi.spec.domain.cpu ?? {};
  const max = maxVcpusOf(vmi);
  return {
    CPU: {
      Mode: cpu.model ?? 'host-model',
      Topology: {
        Sockets: max / ((cpu.cores ?? 1) * (cpu.threads ?? 1)),
        Cores: cpu.cores ?? 1,
        Threads: cpu.threads ?? 1,
      },
    },
    VCPU: { Placement: 'static', CPUs: max },
    VCPUs: enableVcpus(vcpusOf(vmi), max),
  };
}

/** The first vCPUs enabled, in the order in which the guest got them. */
export function enableVcpus(count: number, max: number): NonNullable<DomainSpec['VCPUs']> {
  return {
    VCPU: Array.from({ length: max }, (_, id) => ({
      ID: id,
      Enabled: id < count ? 'yes' : 'no',
      Hotpluggable: id === 0 ? 'no' : 'yes',
      Order: id < count ? id + 1 : 0,
    })),
  };
}

/** The disks of a VMI; hotplugged ones once their volume is in the pod. */
export function convertDisks(vmi: Vmi): DomainDisk[] {
  const letters: Record<string, number> = {};
  return (vmi.spec.domain.devices.disks ?? [])
    .filter((disk) => isAttached(vmi, disk))
    .map((disk) => {
      const bus = (disk.disk ?? disk.cdrom ?? disk.lun)?.bus ?? 'sata';
      const prefix = bus === 'virtio' ? 'vd' : 'sd';
      const index = (letters[prefix] = (letters[prefix] ?? -1) + 1);
      return {
        Device: disk.cdrom === undefined ? (disk.lun === undefined ? 'disk' : 'lun') : 'cdrom',
        Type: 'file',
        Source: { File: `/var/run/kubevirt-private/vmi-disks/${disk.name}/disk.img` },
        Target: { Bus: bus, Device: `${prefix}${String.fromCharCode(97 + index)}` },
        Driver: { Name: 'qemu', Type: 'raw', ErrorPolicy: 'stop', Discard: 'unmap' },
        Alias: { Name: disk.name, UserDefined: true },
      };
    });
}

function isAttached(vmi: Vmi, disk: VmiDisk): boolean {
  const volume = findVolume(vmi, disk.name);
  if (volume === undefined || !isHotplugVolume(volume)) return true;
  const status = vmi.status?.volumeStatus?.find(({ name }) => name === disk.name);
  return READY_PHASES.includes(status?.phase ?? '');
}

/** The interfaces of a VMI: absent ones are left out, new ones only if this launcher may plug them. */
export function convertInterfaces(
  vmi: Vmi,
  { attachments }: ConversionOptions,
  running: readonly DomainInterface[] | undefined,
): DomainInterface[] {
  const isNew = (name: string): boolean => running?.some(({ Alias }) => Alias?.Name === name) !== true;
  return (vmi.spec.domain.devices.interfaces ?? [])
    .filter((nic) => nic.state !== 'absent' && nic.sriov === undefined)
    .filter((nic) => running === undefined || !isNew(nic.name) || attachments?.[nic.name] === 'tap')
    .map((nic, index) => ({
      XMLName: { Local: 'interface' },
      Type: 'ethernet',
      Source: {},
      Target: { Device: `tap${index}`, Managed: 'no' },
      Model: { Type: 'virtio-non-transitional' },
      MAC: { MAC: nic.macAddress ?? `02:00:00:00:00:${(index + 1).toString(16).padStart(2, '0')}` },
      MTU: { Size: '1500' },
      ...(nic.state === 'down' ? { LinkState: { State: 'down' } } : {}),
      Alias: { Name: nic.name, UserDefined: true },
      Rom: { Enabled: 'no' },
    }));
}

/** SR-IOV interfaces are host devices whose alias says so. @source domain-json.md 5 */
export function convertHostDevices(vmi: Vmi): DomainHostDevice[] {
  return (vmi.spec.domain.devices.interfaces ?? [])
    .filter((nic) => nic.sriov !== undefined && nic.state !== 'absent')
    .map((nic) => ({
      XMLName: { Local: 'hostdev' },
      Type: 'pci',
      Managed: 'no',
      Mode: 'subsystem',
      Alias: { Name: `sriov-${nic.name}`, UserDefined: true },
    }));
}
