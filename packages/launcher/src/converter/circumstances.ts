import type { Architecture } from './architecture.ts';
import type { GraceHostFacts } from './grace-facts.ts';

/** Hypervisors that a launcher can be told to use with `--hypervisor`. */
export type HypervisorName = 'kvm' | 'hyperv-direct';

/** What `qemu-img info` says of an image, as far as the conversion needs it. */
export interface ImageInfo {
  readonly format: string;
  /** Empty when the image stands alone. */
  readonly backingFile: string;
  readonly actualSize: number;
  readonly virtualSize: number;
}

/** One host CPU and the CPUs that share its core, itself included. */
export interface TopologyCpu {
  readonly id: number;
  readonly siblings: readonly number[];
}

/** One host NUMA cell. Distances are printed as they come, so they may be bigint. */
export interface TopologyCell {
  readonly id: number;
  readonly cpus: readonly TopologyCpu[];
}

/** The host topology of the request's options. */
export interface HostTopology {
  readonly numaCells: readonly TopologyCell[];
}

/** SMBIOS texts of the request's options. */
export interface SmbiosTexts {
  readonly manufacturer: string;
  readonly product: string;
  readonly version: string;
  readonly sku: string;
  readonly family: string;
}

/** Cluster switches of the request's options. */
export interface ClusterSwitches {
  readonly FreePageReportingDisabled: boolean;
  readonly BochsDisplayForEFIGuests: boolean;
  readonly SerialConsoleLogDisabled: boolean;
  readonly PCINUMAAwareTopologyEnabled: boolean;
  readonly VGPULiveMigrationEnabled: boolean;
  readonly GraceIOVirtualizationEnabled: boolean;
}

/**
 * The fields of `VirtualMachineOptions` that the conversion reads, under their wire names:
 * the decoded message fits as it is.
 */
export interface ConverterOptions {
  readonly VirtualMachineSMBios?: SmbiosTexts | undefined;
  readonly MemBalloonStatsPeriod: number;
  readonly PreallocatedVolumes: readonly string[];
  readonly topology?: HostTopology | undefined;
  readonly clusterConfig?: ClusterSwitches | undefined;
  readonly interfaceDomainAttachment: Readonly<Record<string, string>>;
  readonly GraceHostDeviceAliases: readonly string[];
}

/** Directories and sockets of a launcher that appear in the domain. */
export interface DomainPaths {
  /** `/var/run/kubevirt-private` */
  readonly privateDir: string;
  /** `/var/run/kubevirt-ephemeral-disks` */
  readonly ephemeralDir: string;
  /** `/var/run/kubevirt/container-disks` */
  readonly containerDiskDir: string;
  /** `/var/run/kubevirt/hotplug-disks` */
  readonly hotplugDir: string;
  /** `/var/run/libvirt/empty-disks` */
  readonly emptyDiskDir: string;
}

/** The paths of a launcher pod; the launcher's flags may move some. */
export const DEFAULT_DOMAIN_PATHS: DomainPaths = {
  privateDir: '/var/run/kubevirt-private',
  ephemeralDir: '/var/run/kubevirt-ephemeral-disks',
  containerDiskDir: '/var/run/kubevirt/container-disks',
  hotplugDir: '/var/run/kubevirt/hotplug-disks',
  emptyDiskDir: '/var/run/libvirt/empty-disks',
};

/** Logical, physical and discard sizes of a volume's storage, in bytes. */
export interface BlockSizes {
  readonly logical: number;
  readonly physical: number;
  readonly discardGranularity: number;
}

/** What sysfs says of a host PCI device: where it sits. */
export interface HostPciFacts {
  /** `numa_node`; undefined when it cannot be read or is negative. */
  readonly numaNode: number | undefined;
}

/** One network of `/etc/podinfo/network-info` with its PCI address, if it has one. */
export interface NetworkDeviceInfo {
  readonly network: string;
  readonly pciAddress: string | undefined;
}

/** What identifies the device that a resource claim got. */
export interface ClaimedDevice {
  readonly pciBusId: string | undefined;
  readonly mdevUuid: string | undefined;
}

/** Devices of resource claims by `<claim>/<request>`; a text is the reason why there is none. */
export type DeviceClaims = ReadonlyMap<string, ClaimedDevice | string>;

/**
 * Everything that the conversion must know about the pod and the machine, gathered before it starts.
 * Plain data: the same circumstances and VMI give the same domain.
 */
export interface Circumstances {
  readonly hostArchitecture: Architecture;
  readonly hypervisor: HypervisorName;
  /** `/dev/kvm` or `/dev/mshv` exists and works. */
  readonly hypervisorDeviceAvailable: boolean;
  readonly allowEmulation: boolean;
  readonly allowCrossArchEmulation: boolean;
  /** Emulator binaries that exist; undefined: all do. */
  readonly emulatorPaths: ReadonlySet<string> | undefined;
  readonly firmwareAutoSelection: boolean;
  readonly firmwareDir: string;
  /** File names found in `firmwareDir`. */
  readonly firmwareFiles: ReadonlySet<string>;
  readonly logVerbosity: number;
  readonly paths: DomainPaths;
  readonly podCpuSet: readonly number[];
  /** Names of PVC, DataVolume and ephemeral volumes that are block devices in the pod. */
  readonly blockVolumes: ReadonlySet<string>;
  /** Image facts of every containerDisk volume by volume name. */
  readonly containerDisks: ReadonlyMap<string, ImageInfo>;
  /** Changed block tracking overlay path by volume name. */
  readonly cbtOverlays: ReadonlyMap<string, string>;
  /** Block sizes by source path, for disks with `blockSize.matchVolume`; a text is the reason why they are unknown. */
  readonly blockSizes: ReadonlyMap<string, BlockSizes | string>;
  /** Environment of the launcher: host device addresses by resource. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly networkInfo: readonly NetworkDeviceInfo[];
  readonly deviceClaims: DeviceClaims;
  /** By PCI address `0000:05:00.1`, for NUMA-aware placement. */
  readonly hostPciDevices: ReadonlyMap<string, HostPciFacts>;
  /** Read only when Grace devices are asked for. */
  readonly graceHost: GraceHostFacts;
  readonly hasIommuFd: boolean;
  readonly isMigrationTarget: boolean;
  readonly hasLibvirtHookServer: boolean;
  /** Options of the request; undefined as from a request without them. */
  readonly options: ConverterOptions | undefined;
}
