import type { DomainHostDevice, VolumeStatus } from '@virtwire/vm-model';

import type { ArchitectureTraits } from './architecture.ts';
import type { Circumstances, SmbiosTexts } from './circumstances.ts';
import type { EfiFirmware } from './efi.ts';

/** All that the pure conversion reads besides the VMI: made by `resolveConverterContext`. */
export interface ConverterContext {
  /** Traits of the guest's architecture. */
  readonly arch: ArchitectureTraits;
  /** The guest is emulated on a host of another architecture. */
  readonly isCrossArchitecture: boolean;
  /** Model of virtio devices: `virtio-non-transitional`, `virtio-transitional` or `virtio`. */
  readonly virtioModel: string;
  /** Virtio devices go through an IOMMU. */
  readonly usesIommu: boolean;
  readonly circumstances: Circumstances;
  readonly efi: EfiFirmware | undefined;
  readonly genericHostDevices: readonly DomainHostDevice[];
  readonly gpuHostDevices: readonly DomainHostDevice[];
  readonly sriovHostDevices: readonly DomainHostDevice[];
  readonly permanentVolumes: ReadonlyMap<string, VolumeStatus>;
  readonly hotplugVolumes: ReadonlyMap<string, VolumeStatus>;
  readonly smbios: SmbiosTexts | undefined;
  /** Seconds between balloon statistics; 0: none. */
  readonly balloonPeriodSeconds: number;
  readonly hasFreePageReporting: boolean;
  readonly hasSerialConsoleLog: boolean;
  readonly hasBochsDisplay: boolean;
  readonly preallocatedVolumes: ReadonlySet<string>;
  /** Domain attachment (`tap`, ...) by interface name. */
  readonly attachments: Readonly<Record<string, string>>;
}
