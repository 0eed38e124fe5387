/**
 * How libvirtxml's types that are one of several show in the XML which one they are; the fields of that one stand in the
 * same element.
 *
 * @source libvirt.org/go/libvirtxml domain.go, MarshalXML and UnmarshalXML
 */

/** The ways to be one of several, in the order in which libvirtxml looks for them. */
interface Variants {
  /** By attribute value, the field that holds this variant; `''` is the one without the attribute. */
  readonly of: Readonly<Record<string, string>>;
}

/** A type whose own element says which it is. */
export interface SelfUnion extends Variants {
  readonly attributes: readonly string[];
  /** What an attribute is when it is not there. */
  readonly defaults?: Readonly<Record<string, string>>;
  /** What it is without the attribute. */
  readonly otherwise?: string;
  /** What is written when it is none. */
  readonly none?: string;
  /** The attribute is a field of its own too, so that writing it is left to that. */
  readonly isField?: boolean;
}

/** A type whose attribute says which of several the value of one of its fields is. */
export interface HolderUnion extends Variants {
  readonly field: string;
  readonly attribute: string;
  readonly otherwise?: string;
  readonly isField?: boolean;
  /** The field is there even if the element has no child for it. */
  readonly isAlways: boolean;
}

const CHARDEV = {
  null: 'Null',
  vc: 'VC',
  pty: 'Pty',
  dev: 'Dev',
  file: 'File',
  pipe: 'Pipe',
  stdio: 'StdIO',
  udp: 'UDP',
  tcp: 'TCP',
  unix: 'UNIX',
  spicevmc: 'SpiceVMC',
  spiceport: 'SpicePort',
  nmdm: 'NMDM',
  'qemu-vdagent': 'QEMUVDAgent',
  dbus: 'DBus',
};
const DISK = {
  file: 'File',
  block: 'Block',
  dir: 'Dir',
  network: 'Network',
  volume: 'Volume',
  nvme: 'NVME',
  vhostuser: 'VHostUser',
  vhostvdpa: 'VHostVDPA',
  ctl: 'Ctl',
};

const byType = (of: Readonly<Record<string, string>>, more: Partial<SelfUnion> = {}): SelfUnion => ({
  attributes: ['type'],
  of,
  ...more,
});
const chardev: SelfUnion = byType(CHARDEV, { otherwise: 'unix' });
const source = (of: Readonly<Record<string, string>>, otherwise?: string): HolderUnion => ({
  field: 'Source',
  attribute: 'type',
  of,
  isAlways: true,
  ...(otherwise === undefined ? {} : { otherwise }),
});

/** Types that say in their own element which they are. */
export const SELF_UNIONS: Readonly<Record<string, SelfUnion>> = {
  DomainAddress: byType({
    usb: 'USB',
    pci: 'PCI',
    drive: 'Drive',
    dimm: 'DIMM',
    isa: 'ISA',
    'virtio-mmio': 'VirtioMMIO',
    ccw: 'CCW',
    'virtio-serial': 'VirtioSerial',
    'spapr-vio': 'SpaprVIO',
    ccid: 'CCID',
    'virtio-s390': 'VirtioS390',
    unassigned: 'Unassigned',
  }),
  DomainAudio: byType({
    none: 'None',
    alsa: 'ALSA',
    coreaudio: 'CoreAudio',
    jack: 'Jack',
    oss: 'OSS',
    pulseaudio: 'PulseAudio',
    sdl: 'SDL',
    spice: 'SPICE',
    file: 'File',
    dbus: 'DBus',
    pipewire: 'PipeWire',
  }),
  DomainChannelTarget: byType({ virtio: 'VirtIO', xen: 'Xen', guestfwd: 'GuestFWD' }),
  DomainController: byType(
    { pci: 'PCI', usb: 'USB', 'virtio-serial': 'VirtIOSerial', xenbus: 'XenBus', nvme: 'NVME' },
    { isField: true },
  ),
  DomainCryptoBackend: { attributes: ['model'], of: { builtin: 'BuiltIn', lkcf: 'LKCF' } },
  DomainDiskReservationsSource: chardev,
  DomainDiskSourceNVME: byType({ pci: 'PCI' }),
  DomainDiskSourceVHostUser: chardev,
  DomainGraphic: byType({
    sdl: 'SDL',
    vnc: 'VNC',
    rdp: 'RDP',
    desktop: 'Desktop',
    spice: 'Spice',
    'egl-headless': 'EGLHeadless',
    dbus: 'DBus',
  }),
  DomainGraphicListener: byType({ address: 'Address', network: 'Network', socket: 'Socket' }, { none: 'none' }),
  DomainHostdev: {
    attributes: ['mode', 'type'],
    // As in libvirt: libvirtxml refuses domains without, and KubeVirt writes such.
    defaults: { mode: 'subsystem' },
    of: {
      'subsystem/scsi': 'SubsysSCSI',
      'subsystem/scsi_host': 'SubsysSCSIHost',
      'subsystem/usb': 'SubsysUSB',
      'subsystem/pci': 'SubsysPCI',
      'subsystem/mdev': 'SubsysMDev',
      'capabilities/storage': 'CapsStorage',
      'capabilities/misc': 'CapsMisc',
      'capabilities/net': 'CapsNet',
    },
  },
  DomainHostdevSubsysSCSISource: { attributes: ['protocol'], of: { '': 'Host', iscsi: 'ISCSI' }, otherwise: '' },
  DomainLaunchSecurity: byType({ sev: 'SEV', 'sev-snp': 'SEVSNP', 's390-pv': 'S390PV', tdx: 'TDX' }),
  DomainRNGBackend: { attributes: ['model'], of: { random: 'Random', egd: 'EGD', builtin: 'BuiltIn' } },
  DomainSmartcard: { attributes: ['mode'], of: { host: 'Host' } },
  DomainSysInfo: byType({ smbios: 'SMBIOS', fwcfg: 'FWCfg' }),
  DomainTPMBackend: byType({ passthrough: 'Passthrough', emulator: 'Emulator', external: 'External' }),
  DomainTPMBackendExternalSource: chardev,
  DomainTPMBackendSource: byType({ file: 'File', dir: 'Dir' }),
};

/** Types that say for the value of one of their fields which it is. */
export const HOLDER_UNIONS: Readonly<Record<string, HolderUnion>> = {
  DomainChannel: source(CHARDEV, 'pty'),
  DomainConsole: source(CHARDEV, 'pty'),
  DomainDisk: source(DISK, 'file'),
  DomainDiskBackingStore: source(DISK, 'file'),
  DomainDiskDataStore: source(DISK, 'file'),
  DomainDiskMirror: source(DISK, 'file'),
  DomainFilesystem: source(
    { mount: 'Mount', block: 'Block', file: 'File', template: 'Template', ram: 'RAM', bind: 'Bind', volume: 'Volume' },
    'mount',
  ),
  DomainInput: { ...source({ passthrough: 'Passthrough', evdev: 'EVDev' }), isField: true },
  DomainInterface: source({
    user: 'User',
    ethernet: 'Ethernet',
    vhostuser: 'VHostUser',
    server: 'Server',
    client: 'Client',
    mcast: 'MCast',
    network: 'Network',
    bridge: 'Bridge',
    internal: 'Internal',
    direct: 'Direct',
    hostdev: 'Hostdev',
    udp: 'UDP',
    vdpa: 'VDPA',
    null: 'Null',
    vds: 'VDS',
  }),
  DomainInterfaceVirtualPort: {
    field: 'Params',
    attribute: 'type',
    of: {
      '': 'Any',
      '802.1Qbg': 'VEPA8021QBG',
      '802.1Qbh': 'VNTag8011QBH',
      openvswitch: 'OpenVSwitch',
      midonet: 'MidoNet',
    },
    otherwise: '',
    isAlways: true,
  },
  DomainNVRam: { ...source(DISK), isAlways: false },
  DomainParallel: source(CHARDEV, 'pty'),
  DomainRedirDev: source(CHARDEV, 'pty'),
  DomainRNGBackendEGD: source(CHARDEV, 'pty'),
  DomainSerial: source(CHARDEV, 'pty'),
  DomainSmartcard: { field: 'Passthrough', attribute: 'type', of: CHARDEV, otherwise: 'pty', isAlways: false },
};

/** Numbers that are written in hexadecimal, with as many digits at least; the others are decimal. */
export const HEX_DIGITS: Readonly<Record<string, number>> = {
  'DomainAddressCCW.CSSID': 1,
  'DomainAddressCCW.DevNo': 4,
  'DomainAddressCCW.SSID': 1,
  'DomainAddressDIMM.Base': 1,
  'DomainAddressISA.IOBase': 1,
  'DomainAddressISA.IRQ': 1,
  'DomainAddressPCI.Bus': 2,
  'DomainAddressPCI.Domain': 4,
  'DomainAddressPCI.Function': 1,
  'DomainAddressPCI.Slot': 2,
  'DomainAddressSpaprVIO.Reg': 1,
  'DomainAddressZPCI.FID': 4,
  'DomainAddressZPCI.UID': 4,
  'DomainLaunchSecuritySEV.Policy': 4,
  'DomainLaunchSecuritySEVSNP.Policy': 8,
  'DomainLaunchSecurityTDX.Policy': 8,
  'DomainMemorydevTargetAddress.Base': 8,
  'DomainRedirFilterUSB.Class': 2,
  'DomainRedirFilterUSB.Product': 4,
  'DomainRedirFilterUSB.Vendor': 4,
};

/** Namespaces of what only one hypervisor has, by the prefixes that libvirt writes. */
export const NAMESPACES: Readonly<Record<string, string>> = {
  bhyve: 'http://libvirt.org/schemas/domain/bhyve/1.0',
  lxc: 'http://libvirt.org/schemas/domain/lxc/1.0',
  qemu: 'http://libvirt.org/schemas/domain/qemu/1.0',
  vmware: 'http://libvirt.org/schemas/domain/vmware/1.0',
  xen: 'http://libvirt.org/schemas/domain/xen/1.0',
};
