import type { Vmi, VolumeStatus } from '@virtwire/vm-model';

import { LauncherError } from '../errors.ts';
import { type ArchitectureTraits, architectureTraits } from './architecture.ts';
import { checkSizes } from './check-sizes.ts';
import type { Circumstances, ImageInfo } from './circumstances.ts';
import { claimedGpus, claimedHostDevices, claimedVirtualFunctions } from './claimed-devices.ts';
import type { ConverterContext } from './context.ts';
import { type EfiFirmware, firmwareFileNames, selectEfiFirmware } from './efi.ts';
import { genericHostDevices, gpuHostDevices } from './host-device-pools.ts';
import { sriovHostDevices } from './sriov.ts';
import { annotationOf, confidentialityOf, isHighPerformance, needsIommu } from './vmi-traits.ts';

const FREE_PAGE_REPORTING_ANNOTATION = 'kubevirt.io/free-page-reporting-disabled';
const IMAGE_FORMATS = new Set(['raw', 'qcow2']);

/**
 * Judges the circumstances for one VMI: container disk images, firmware, host devices. Pure.
 *
 * @throws {LauncherError} `ConvertFailed` with KubeVirt's message when something is missing or unfit.
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/manager.go:1150
 */
export function resolveConverterContext(vmi: Vmi, circumstances: Circumstances): ConverterContext {
  checkSizes(vmi);
  checkContainerDisks(vmi, circumstances.containerDisks);
  const { options } = circumstances;
  const { devices } = vmi.spec.domain;
  const { arch, isCrossArchitecture } = guestArchitecture(vmi, circumstances);
  const statuses = vmi.status?.volumeStatus ?? [];
  const byName = (wanted: boolean): Map<string, VolumeStatus> =>
    new Map(statuses.filter((s) => (s.hotplugVolume !== undefined) === wanted).map((s) => [s.name, s]));
  return {
    arch,
    isCrossArchitecture,
    virtioModel: virtioModel(vmi, arch),
    usesIommu: needsIommu(vmi),
    circumstances,
    efi: efiFirmware(vmi, arch, circumstances),
    sriovHostDevices: [...sriovHostDevices(vmi, circumstances), ...claimedVirtualFunctions(vmi, circumstances)],
    genericHostDevices: [...genericHostDevices(vmi, circumstances), ...claimedHostDevices(vmi, circumstances)],
    gpuHostDevices: [...gpuHostDevices(vmi, circumstances), ...claimedGpus(vmi, circumstances)],
    permanentVolumes: byName(false),
    hotplugVolumes: byName(true),
    smbios: options?.VirtualMachineSMBios,
    balloonPeriodSeconds: options?.MemBalloonStatsPeriod ?? 0,
    hasFreePageReporting: hasFreePageReporting(vmi, circumstances),
    hasSerialConsoleLog: devices.logSerialConsole ?? options?.clusterConfig?.SerialConsoleLogDisabled !== true,
    hasBochsDisplay: options?.clusterConfig?.BochsDisplayForEFIGuests ?? false,
    preallocatedVolumes: new Set(options?.PreallocatedVolumes ?? []),
    attachments: options?.interfaceDomainAttachment ?? {},
  };
}

function guestArchitecture(
  vmi: Vmi,
  circumstances: Circumstances,
): { readonly arch: ArchitectureTraits; readonly isCrossArchitecture: boolean } {
  const wanted = vmi.spec.architecture ?? '';
  const isCrossArchitecture =
    circumstances.allowCrossArchEmulation &&
    circumstances.hypervisor === 'kvm' &&
    wanted !== '' &&
    wanted !== circumstances.hostArchitecture;
  return {
    arch: architectureTraits(isCrossArchitecture ? wanted : circumstances.hostArchitecture),
    isCrossArchitecture,
  };
}

function virtioModel(vmi: Vmi, arch: ArchitectureTraits): string {
  if (arch.hasPlainVirtio) return 'virtio';
  return vmi.spec.domain.devices.useVirtioTransitional === true ? 'virtio-transitional' : 'virtio-non-transitional';
}

function efiFirmware(vmi: Vmi, arch: ArchitectureTraits, circumstances: Circumstances): EfiFirmware | undefined {
  const efi = vmi.spec.domain.firmware?.bootloader?.efi;
  if (efi === undefined) return undefined;
  // A foreign guest takes its own firmware where that is installed, else what the host's guests take, as the model does.
  const hasOwn = firmwareFileNames(arch).some((name) => circumstances.firmwareFiles.has(name));
  const provider = hasOwn ? arch : architectureTraits(circumstances.hostArchitecture);
  return selectEfiFirmware(provider, efi.secureBoot ?? true, confidentialityOf(vmi), circumstances);
}

function hasFreePageReporting(vmi: Vmi, circumstances: Circumstances): boolean {
  return (
    circumstances.options?.clusterConfig?.FreePageReportingDisabled !== true &&
    vmi.spec.domain.devices.autoattachMemBalloon !== false &&
    !isHighPerformance(vmi) &&
    annotationOf(vmi, FREE_PAGE_REPORTING_ANNOTATION) !== 'true'
  );
}

function checkContainerDisks(vmi: Vmi, images: ReadonlyMap<string, ImageInfo>): void {
  for (const volume of vmi.spec.volumes ?? []) {
    if (volume.containerDisk === undefined) continue;
    const image = images.get(volume.name);
    const fault = image === undefined ? undefined : imageFault(image);
    if (fault !== undefined) {
      throw new LauncherError('ConvertFailed', `invalid image in containerDisk ${volume.name}: ${fault}`);
    }
  }
}

/** A qcow2 with a backing file could read any file of the node. */
function imageFault(image: ImageInfo): string | undefined {
  if (!IMAGE_FORMATS.has(image.format)) return `unsupported image format: ${image.format}`;
  if (image.format === 'qcow2' && image.backingFile !== '') {
    return `expected no backing file, but found ${image.backingFile}`;
  }
  return undefined;
}
