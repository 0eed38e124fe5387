import type { DomainBackingStore, DomainDiskSource, Vmi, VmiDisk, Volume } from '@virtwire/vm-model';

import { LauncherError } from '../errors.ts';
import type { ConverterContext } from './context.ts';
import type { DiskDraft } from './disks.ts';
import {
  blockDevice,
  cloudInitImage,
  configImage,
  containerDiskImage,
  downwardMetricsDisk,
  emptyDiskImage,
  filesystemImage,
  hotplugPath,
  overlayImage,
} from './volume-paths.ts';

/**
 * Sets source and image format of a disk from its volume; without one it is an empty CD-ROM drive.
 *
 * @throws {LauncherError} `ConvertFailed` for a volume that cannot be a disk.
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/converter/converter.go, Convert_v1_Volume_To_api_Disk
 */
export function configureVolume(
  vmi: Vmi,
  disk: VmiDisk,
  volume: Volume | undefined,
  context: ConverterContext,
  draft: DiskDraft,
): void {
  if (volume === undefined) {
    draft.Type = 'block';
    draft.Driver.Type = 'raw';
    draft.Driver.Discard = 'unmap';
  } else if (context.hotplugVolumes.has(disk.name)) {
    configureHotplugVolume(volume, context, draft);
  } else {
    configurePermanentVolume(vmi, volume, context, draft);
  }
}

function configurePermanentVolume(vmi: Vmi, volume: Volume, context: ConverterContext, draft: DiskDraft): void {
  const { paths } = context.circumstances;
  if (volume.containerDisk !== undefined) return configureContainerDisk(vmi, volume, context, draft);
  if (volume.cloudInitNoCloud !== undefined) return setFile(draft, 'raw', cloudInitImage(paths, vmi, 'noCloud'));
  if (volume.cloudInitConfigDrive !== undefined) {
    return setFile(draft, 'raw', cloudInitImage(paths, vmi, 'configDrive'));
  }
  if (volume.hostDisk !== undefined) return configureHostDisk(volume, volume.hostDisk.path, context, draft);
  if (volume.persistentVolumeClaim !== undefined || volume.dataVolume !== undefined) {
    return configureClaim(volume, context, draft);
  }
  if (volume.ephemeral !== undefined) return configureEphemeral(volume, context, draft);
  if (volume.emptyDisk !== undefined) {
    setFile(draft, 'qcow2', emptyDiskImage(paths, volume.name));
    draft.Driver.Discard = 'unmap';
    return;
  }
  const image = configImage(paths, volume);
  if (image !== undefined) return setFile(draft, 'raw', image);
  if (volume.downwardMetrics !== undefined) return configureDownwardMetrics(context, draft);
  throw new LauncherError('ConvertFailed', `disk ${volume.name} references an unsupported source`);
}

function configureContainerDisk(vmi: Vmi, volume: Volume, context: ConverterContext, draft: DiskDraft): void {
  const { paths, containerDisks } = context.circumstances;
  const info = containerDisks.get(volume.name);
  if (info === undefined) {
    throw new LauncherError('ConvertFailed', `no disk info provided for volume ${volume.name}`);
  }
  const index = vmi.spec.volumes?.findIndex(({ name }) => name === volume.name) ?? 0;
  setFile(draft, 'qcow2', overlayImage(paths, volume.name));
  draft.Driver.Discard = 'unmap';
  draft.BackingStore = fileBacking(info.format, containerDiskImage(paths, index));
}

function configureEphemeral(volume: Volume, context: ConverterContext, draft: DiskDraft): void {
  const { paths, blockVolumes } = context.circumstances;
  setFile(draft, 'qcow2', overlayImage(paths, volume.name));
  draft.Driver.Discard = 'unmap';
  draft.BackingStore = blockVolumes.has(volume.name)
    ? {
        Type: 'block',
        Format: { Type: 'raw' },
        Source: { Dev: blockDevice(volume.name), Name: volume.name },
      }
    : fileBacking('raw', filesystemImage(paths, volume.name));
}

function configureClaim(volume: Volume, context: ConverterContext, draft: DiskDraft): void {
  const { paths, blockVolumes, cbtOverlays } = context.circumstances;
  const isBlock = blockVolumes.has(volume.name);
  const source: DomainDiskSource = isBlock
    ? { Dev: blockDevice(volume.name), Name: volume.name }
    : { File: filesystemImage(paths, volume.name) };
  const overlay = cbtOverlays.get(volume.name);
  if (overlay === undefined) setSource(draft, isBlock ? 'block' : 'file', 'raw', source);
  else setTrackedSource(draft, overlay, isBlock, source);
  discardUnlessPreallocated(volume, context, draft);
}

function configureHostDisk(volume: Volume, path: string, context: ConverterContext, draft: DiskDraft): void {
  const { paths, cbtOverlays } = context.circumstances;
  const image = filesystemImage(paths, volume.name, path);
  const overlay = cbtOverlays.get(volume.name);
  if (overlay === undefined) setFile(draft, 'raw', image);
  else setTrackedSource(draft, overlay, false, { File: image });
}

function configureHotplugVolume(volume: Volume, context: ConverterContext, draft: DiskDraft): void {
  const isClaim =
    volume.persistentVolumeClaim !== undefined || volume.dataVolume !== undefined || volume.hostDisk !== undefined;
  if (!isClaim) {
    throw new LauncherError('ConvertFailed', `hotplug disk ${volume.name} references an unsupported source`);
  }
  const { paths, blockVolumes, cbtOverlays } = context.circumstances;
  const isBlock = blockVolumes.has(volume.name);
  const path = hotplugPath(paths, volume.name, isBlock);
  const source = isBlock ? { Dev: path } : { File: path };
  const overlay = cbtOverlays.get(volume.name);
  if (overlay === undefined) setSource(draft, isBlock ? 'block' : 'file', 'raw', source);
  else setTrackedSource(draft, overlay, isBlock, source);
  discardUnlessPreallocated(volume, context, draft);
}

/** The guest reads this disk raw and past every cache. */
function configureDownwardMetrics(context: ConverterContext, draft: DiskDraft): void {
  draft.ReadOnly = {};
  draft.Type = 'file';
  draft.Model = context.virtioModel;
  draft.Driver = { Name: 'qemu', Type: 'raw' };
  draft.Source = { File: downwardMetricsDisk(context.circumstances.paths) };
}

function setFile(draft: DiskDraft, format: string, file: string): void {
  setSource(draft, 'file', format, { File: file });
}

function setSource(draft: DiskDraft, type: string, format: string, source: DomainDiskSource): void {
  draft.Type = type;
  draft.Driver.Type = format;
  draft.Source = { ...draft.Source, ...source };
}

/** An overlay that records changed blocks and keeps the data itself in the volume. */
function setTrackedSource(draft: DiskDraft, overlay: string, isBlock: boolean, source: DomainDiskSource): void {
  const { Name, ...data } = source;
  setSource(draft, 'file', 'qcow2', {
    File: overlay,
    ...(Name === undefined ? {} : { Name }),
    DataStore: { Type: isBlock ? 'block' : 'file', Format: { Type: 'raw' }, Source: data },
  });
}

function fileBacking(format: string, file: string): DomainBackingStore {
  return { Type: 'file', Format: { Type: format }, Source: { File: file } };
}

function discardUnlessPreallocated(volume: Volume, context: ConverterContext, draft: DiskDraft): void {
  if (!context.preallocatedVolumes.has(volume.name)) draft.Driver.Discard = 'unmap';
}
