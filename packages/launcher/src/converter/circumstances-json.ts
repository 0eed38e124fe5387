import type { Vmi } from '@virtwire/vm-model';

import { architectureTraits, isArchitecture } from './architecture.ts';
import {
  type Circumstances,
  type ConverterOptions,
  DEFAULT_DOMAIN_PATHS,
  type HostTopology,
  type ImageInfo,
  type NetworkDeviceInfo,
} from './circumstances.ts';
import { firmwareFileNames } from './efi.ts';
import { NO_GRACE_HOST } from './grace-facts.ts';

/** Circumstances of a conversion as people write them: the `context.json` of the converter vectors. */
export interface CircumstancesJson {
  readonly hostArchitecture?: string;
  readonly allowEmulation?: boolean;
  readonly hypervisorDeviceAvailable?: boolean;
  readonly hypervisorName?: string;
  readonly allowCrossArchEmulation?: boolean;
  readonly firmwareFilesPresent?: boolean;
  readonly ovmfPath?: string;
  readonly firmwareAutoSelection?: boolean;
  readonly podCPUSet?: readonly number[] | null;
  readonly blockVolumes?: readonly string[] | null;
  readonly containerDisks?: Readonly<Record<string, ImageInfoJson>> | null;
  readonly applyCBT?: Readonly<Record<string, string>> | null;
  readonly env?: Readonly<Record<string, string>> | null;
  readonly networkInfo?: NetworkInfoJson | null;
}

/** What `qemu-img info --output json` prints, as far as it matters. */
export interface ImageInfoJson {
  readonly format?: string;
  readonly 'backing-filename'?: string;
  readonly 'actual-size'?: number;
  readonly 'virtual-size'?: number;
}

/** `/etc/podinfo/network-info`. */
export interface NetworkInfoJson {
  readonly interfaces?: readonly {
    readonly network?: string;
    readonly deviceInfo?: { readonly pci?: { readonly 'pci-address'?: string } };
  }[];
}

/** `VirtualMachineOptions` in protobuf JSON: fields with default values left out. */
export interface ConverterOptionsJson {
  readonly VirtualMachineSMBios?: Partial<NonNullable<ConverterOptions['VirtualMachineSMBios']>>;
  readonly MemBalloonStatsPeriod?: number;
  readonly PreallocatedVolumes?: readonly string[];
  readonly topology?: {
    readonly numaCells?: readonly {
      readonly id?: number;
      readonly cpus?: readonly { readonly id?: number; readonly siblings?: readonly number[] }[];
    }[];
  };
  readonly clusterConfig?: Partial<NonNullable<ConverterOptions['clusterConfig']>>;
  readonly interfaceDomainAttachment?: Readonly<Record<string, string>>;
  readonly GraceHostDeviceAliases?: readonly string[];
}

const FIRMWARE_DIRS = { amd64: '/usr/share/edk2/ovmf', arm64: '/usr/share/AAVMF', s390x: '' } as const;
const DEFAULT_IMAGE: ImageInfo = { format: 'qcow2', backingFile: '', actualSize: 0, virtualSize: 0 };

/**
 * Circumstances out of JSON; what is left out is as on an ordinary node of that architecture. Container disks that
 * are not named count as plain qcow2 images.
 */
export function circumstancesFromJson(
  vmi: Vmi,
  json: CircumstancesJson,
  options: ConverterOptionsJson | undefined,
): Circumstances {
  const hostName = json.hostArchitecture ?? 'amd64';
  const hostArchitecture = isArchitecture(hostName) ? hostName : 'amd64';
  const environment = json.env ?? {};
  const firmwareDir = json.ovmfPath ?? FIRMWARE_DIRS[hostArchitecture];
  // s390x has no directory of firmware.
  const hasFirmware = (json.firmwareFilesPresent ?? true) && firmwareDir !== '';
  return {
    hostArchitecture,
    hypervisor: json.hypervisorName === 'hyperv-direct' ? 'hyperv-direct' : 'kvm',
    hypervisorDeviceAvailable: json.hypervisorDeviceAvailable ?? true,
    allowEmulation: json.allowEmulation ?? true,
    allowCrossArchEmulation: json.allowCrossArchEmulation ?? false,
    emulatorPaths: undefined,
    firmwareAutoSelection: json.firmwareAutoSelection ?? false,
    firmwareDir,
    firmwareFiles: new Set(hasFirmware ? firmwareFileNames(architectureTraits(hostArchitecture)) : []),
    logVerbosity: Number(environment['VIRT_LAUNCHER_LOG_VERBOSITY'] ?? 2),
    paths: DEFAULT_DOMAIN_PATHS,
    podCpuSet: json.podCPUSet ?? [],
    blockVolumes: new Set(json.blockVolumes ?? []),
    containerDisks: imagesOf(vmi, json),
    cbtOverlays: new Map(Object.entries(json.applyCBT ?? {})),
    blockSizes: new Map(),
    environment,
    networkInfo: parseNetworkInfo(json.networkInfo ?? {}),
    deviceClaims: new Map(),
    hostPciDevices: new Map(),
    graceHost: NO_GRACE_HOST,
    hasIommuFd: false,
    isMigrationTarget: false,
    hasLibvirtHookServer: false,
    options: options === undefined ? undefined : optionsFromJson(options),
  };
}

/** Networks of network-info with their PCI addresses. */
export function parseNetworkInfo(json: NetworkInfoJson): readonly NetworkDeviceInfo[] {
  return (json.interfaces ?? []).map(({ network, deviceInfo }) => ({
    network: network ?? '',
    pciAddress: deviceInfo?.pci?.['pci-address'],
  }));
}

/** Image facts out of what `qemu-img info` prints. */
export function imageInfoFromJson(json: ImageInfoJson): ImageInfo {
  return {
    format: json.format ?? '',
    backingFile: json['backing-filename'] ?? '',
    actualSize: json['actual-size'] ?? 0,
    virtualSize: json['virtual-size'] ?? 0,
  };
}

function imagesOf(vmi: Vmi, json: CircumstancesJson): Map<string, ImageInfo> {
  const images = new Map<string, ImageInfo>();
  for (const { name, containerDisk } of vmi.spec.volumes ?? []) {
    if (containerDisk === undefined) continue;
    const image = json.containerDisks?.[name];
    images.set(name, image === undefined ? DEFAULT_IMAGE : { ...DEFAULT_IMAGE, ...imageInfoFromJson(image) });
  }
  return images;
}

function optionsFromJson(json: ConverterOptionsJson): ConverterOptions {
  const { VirtualMachineSMBios: smbios, clusterConfig: cluster, topology } = json;
  return {
    MemBalloonStatsPeriod: json.MemBalloonStatsPeriod ?? 0,
    PreallocatedVolumes: json.PreallocatedVolumes ?? [],
    interfaceDomainAttachment: json.interfaceDomainAttachment ?? {},
    GraceHostDeviceAliases: json.GraceHostDeviceAliases ?? [],
    ...(smbios === undefined
      ? {}
      : { VirtualMachineSMBios: { manufacturer: '', product: '', version: '', sku: '', family: '', ...smbios } }),
    ...(cluster === undefined ? {} : { clusterConfig: { ...NO_SWITCHES, ...cluster } }),
    ...(topology === undefined ? {} : { topology: topologyFromJson(topology) }),
  };
}

const NO_SWITCHES: NonNullable<ConverterOptions['clusterConfig']> = {
  FreePageReportingDisabled: false,
  BochsDisplayForEFIGuests: false,
  SerialConsoleLogDisabled: false,
  PCINUMAAwareTopologyEnabled: false,
  VGPULiveMigrationEnabled: false,
  GraceIOVirtualizationEnabled: false,
};

function topologyFromJson(topology: NonNullable<ConverterOptionsJson['topology']>): HostTopology {
  return {
    numaCells: (topology.numaCells ?? []).map((cell) => ({
      id: cell.id ?? 0,
      cpus: (cell.cpus ?? []).map((cpu) => ({ id: cpu.id ?? 0, siblings: cpu.siblings ?? [] })),
    })),
  };
}
