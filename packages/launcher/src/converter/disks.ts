import type { Domain, DomainDisk, DomainDiskDriver, DomainDiskTarget, Vmi, VmiDisk, Volume } from '@virtwire/vm-model';
import { quantityValue } from '@virtwire/vm-model';

import { LauncherError, textOf } from '../errors.ts';
import { configureBlockSize } from './block-size.ts';
import type { ConverterContext } from './context.ts';
import { guestTopology, vcpuCount } from './cpu.ts';
import { DiskNamer } from './disk-names.ts';
import { configureVolume } from './disk-volumes.ts';
import { IoThreadAssigner } from './iothreads.ts';
import { toInt64 } from './memory.ts';
import { parsePciAddress } from './pci-address.ts';
import { busOf } from './vmi-traits.ts';
import { nonEmpty } from './non-empty.ts';

const ERROR_POLICIES = new Set(['stop', 'ignore', 'report', 'enospace']);
const PR_HELPER_SOCKET = '/var/run/kubevirt/daemons/pr/pr-helper.sock';
/** Phases of a hot-plugged volume in which its disk may be attached. */
const ATTACHABLE_PHASES = new Set(['MountedToPod', 'Ready']);

/** A domain disk whose parts are there to be filled in. */
export type DiskDraft = DomainDisk & {
  Source: NonNullable<DomainDisk['Source']>;
  Driver: DomainDiskDriver;
  Target: DomainDiskTarget;
};

/**
 * Disks in spec order. A disk that is not attachable yet keeps its name and is left out.
 *
 * @throws {LauncherError} `ConvertFailed` for a disk without volume or with options that contradict each other.
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/converter/converter.go
 */
export function configureDisks(vmi: Vmi, context: ConverterContext, domain: Domain): void {
  const volumes = new Map((vmi.spec.volumes ?? []).map((volume) => [volume.name, volume]));
  const namer = new DiskNamer(vmi);
  const ioThreads = new IoThreadAssigner(vmi);
  const result: DomainDisk[] = [];
  for (const disk of vmi.spec.domain.devices.disks ?? []) {
    const draft = renderDisk(vmi, disk, namer, context);
    const volume = volumes.get(disk.name);
    if (volume === undefined && disk.cdrom === undefined) {
      throw new LauncherError('ConvertFailed', `no matching volume with name ${disk.name} found`);
    }
    configureVolume(vmi, disk, volume, context, draft);
    configureBlockSize(disk, context, draft);
    ioThreads.assign(disk, draft.Driver);
    configureErrorPolicy(disk, draft);
    if (isPresent(disk, volume, context)) result.push(draft);
  }
  if (result.length > 0) domain.Spec.Devices.Disks = result;
}

function isPresent(disk: VmiDisk, volume: Volume | undefined, context: ConverterContext): boolean {
  const { permanentVolumes, hotplugVolumes } = context;
  const hotplug = hotplugVolumes.get(disk.name);
  return (
    permanentVolumes.has(disk.name) ||
    permanentVolumes.size === 0 ||
    ATTACHABLE_PHASES.has(hotplug?.phase ?? '') ||
    (volume === undefined && disk.cdrom !== undefined)
  );
}

function renderDisk(vmi: Vmi, disk: VmiDisk, namer: DiskNamer, context: ConverterContext): DiskDraft {
  const bus = busOf(disk);
  // Admission makes a disk of what is of no kind; what did not come by there has no name in the guest either.
  const hasKind = disk.disk !== undefined || disk.lun !== undefined || disk.cdrom !== undefined;
  const name = hasKind ? namer.nameOf(disk.name, bus) : undefined;
  const draft: DiskDraft = {
    Source: {},
    Target: { Bus: bus, Device: name?.device },
    Driver: { Name: 'qemu', Cache: disk.cache, IO: disk.io },
    Alias: { Name: disk.name, UserDefined: true },
  };
  if (disk.disk !== undefined) configureDisk(disk, disk.disk, context, draft);
  else if (disk.lun !== undefined) configureLun(disk.lun, draft);
  else if (disk.cdrom !== undefined) configureCdrom(disk.cdrom, draft);
  if (bus === 'scsi' && disk.cdrom === undefined) {
    draft.Address = { Type: 'drive', Controller: '0', Bus: '0', Unit: String(name?.index ?? 0) };
  }
  if (disk.disk !== undefined || disk.lun !== undefined) {
    if (!context.preallocatedVolumes.has(disk.name)) draft.Driver.Discard = 'unmap';
    configureCapacity(disk, context, draft);
  }
  if (bus === 'virtio' && vmi.spec.domain.devices.blockMultiQueue === true) {
    draft.Driver.Queues = Math.max(1, vcpuCount(guestTopology(vmi)));
  }
  if (disk.bootOrder !== undefined) draft.BootOrder = { Order: disk.bootOrder };
  if (context.usesIommu && bus === 'virtio') draft.Driver.IOMMU = 'on';
  return draft;
}

function configureDisk(
  disk: VmiDisk,
  target: NonNullable<VmiDisk['disk']>,
  context: ConverterContext,
  draft: DiskDraft,
): void {
  draft.Device = 'disk';
  if (target.pciAddress) draft.Address = guestPciAddress(disk.name, target.bus ?? '', target.pciAddress);
  if (target.bus === 'virtio') draft.Model = context.virtioModel;
  if (target.readonly === true) draft.ReadOnly = {};
  draft.Serial = disk.serial;
  if (disk.shareable !== true) return;
  const cache = nonEmpty(disk.cache) ?? 'none';
  if (cache !== 'none') {
    throw new LauncherError('ConvertFailed', `a sharable disk requires cache = none got: ${cache}`);
  }
  draft.Driver.Cache = cache;
  draft.Shareable = {};
}

function guestPciAddress(name: string, bus: string, address: string): DomainDisk['Address'] {
  if (bus !== 'virtio') {
    throw new LauncherError(
      'ConvertFailed',
      `setting a pci address is not allowed for non-virtio bus types, for disk ${name}`,
    );
  }
  try {
    return parsePciAddress(address);
  } catch (error) {
    throw new LauncherError('ConvertFailed', `failed to configure disk ${name}: ${textOf(error)}`, { cause: error });
  }
}

function configureLun(target: NonNullable<VmiDisk['lun']>, draft: DiskDraft): void {
  draft.Device = 'lun';
  if (target.readonly === true) draft.ReadOnly = {};
  if (target.reservation !== true) return;
  draft.Source.Reservations = {
    Managed: 'no',
    Migration: 'yes',
    SourceReservations: { Type: 'unix', Path: PR_HELPER_SOCKET, Mode: 'client' },
  };
}

function configureCdrom(target: NonNullable<VmiDisk['cdrom']>, draft: DiskDraft): void {
  draft.Device = 'cdrom';
  draft.Target.Tray = target.tray;
  if (target.readonly !== false) draft.ReadOnly = {};
}

/** What the launcher must know to grow the disk later; libvirt ignores these elements. */
function configureCapacity(disk: VmiDisk, context: ConverterContext, draft: DiskDraft): void {
  const status = context.permanentVolumes.get(disk.name) ?? context.hotplugVolumes.get(disk.name);
  const claim = status?.persistentVolumeClaimInfo;
  if (claim === undefined) return;
  draft.FilesystemOverhead = claim.filesystemOverhead;
  const capacity = claim.capacity?.['storage'];
  const request = claim.requests?.['storage'];
  if (capacity === undefined || request === undefined) return;
  const [a, b] = [quantityValue(capacity), quantityValue(request)];
  draft.Capacity = toInt64(a < b ? a : b);
}

function configureErrorPolicy(disk: VmiDisk, draft: DiskDraft): void {
  const policy = disk.errorPolicy ?? 'stop';
  if (!ERROR_POLICIES.has(policy)) {
    throw new LauncherError('ConvertFailed', `error policy ${policy} not recognized`);
  }
  draft.Driver.ErrorPolicy = policy;
}
