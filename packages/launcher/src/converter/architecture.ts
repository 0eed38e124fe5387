/** Guest or host architecture, in KubeVirt's words. */
export type Architecture = 'amd64' | 'arm64' | 's390x';

/** What differs between architectures in the domain that libvirt gets. */
export interface ArchitectureTraits {
  readonly name: Architecture;
  /** libvirt's name in `<type arch>`. */
  readonly osArch: string;
  readonly defaultMachine: string;
  readonly emulatorPath: string;
  /** The virtio model is always plain `virtio`. */
  readonly hasPlainVirtio: boolean;
  readonly scsiControllerModel: string | undefined;
  readonly hasCpuHotplug: boolean;
  readonly hasSmbios: boolean;
  readonly disablesVmPort: boolean;
  readonly tunesRom: boolean;
  readonly disablesMpx: boolean;
  readonly hasFirmwareDebug: boolean;
  readonly hasPciHole64: boolean;
  readonly hasPciPlacement: boolean;
}

const AMD64: ArchitectureTraits = {
  name: 'amd64',
  osArch: 'x86_64',
  defaultMachine: 'q35',
  emulatorPath: '/usr/bin/qemu-system-x86_64',
  hasPlainVirtio: false,
  scsiControllerModel: undefined,
  hasCpuHotplug: true,
  hasSmbios: true,
  disablesVmPort: true,
  tunesRom: true,
  disablesMpx: true,
  hasFirmwareDebug: true,
  hasPciHole64: true,
  hasPciPlacement: true,
};

const ARM64: ArchitectureTraits = {
  ...AMD64,
  name: 'arm64',
  osArch: 'aarch64',
  defaultMachine: 'virt',
  emulatorPath: '/usr/bin/qemu-system-aarch64',
  hasCpuHotplug: false,
  disablesVmPort: false,
  disablesMpx: false,
  hasFirmwareDebug: false,
  hasPciHole64: false,
};

const S390X: ArchitectureTraits = {
  ...ARM64,
  name: 's390x',
  osArch: 's390x',
  defaultMachine: 's390-ccw-virtio',
  emulatorPath: '/usr/bin/qemu-system-s390x',
  hasPlainVirtio: true,
  scsiControllerModel: 'virtio-scsi',
  hasCpuHotplug: true,
  hasSmbios: false,
  tunesRom: false,
  hasPciPlacement: false,
};

/**
 * The traits of an architecture; an unknown one counts as amd64.
 *
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/converter/arch/converter.go
 */
export function architectureTraits(name: string): ArchitectureTraits {
  if (name === 'arm64') return ARM64;
  if (name === 's390x') return S390X;
  return AMD64;
}

/** Whether a name is an architecture that KubeVirt knows. */
export function isArchitecture(name: string): name is Architecture {
  return name === 'amd64' || name === 'arm64' || name === 's390x';
}
