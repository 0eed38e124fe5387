import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path/posix';

import type { Vmi, Volume } from '@virtwire/vm-model';

import { isNonRoot } from '../converter/vmi-traits.ts';
import { blockDevice, filesystemImage, hotplugPath, trackingOverlayImage } from '../converter/volume-paths.ts';
import { diskError, exists, giveToQemu } from './files.ts';
import { isBlockDevice } from './image-info.ts';
import type { DiskDeps } from './ports.ts';
import { createTrackingOverlay } from './storage-daemon.ts';

const OVERLAY_MODE = 0o640;
const TRACKING_STATES = new Set(['Initializing', 'Enabled']);

/** What making tracking overlays needs. */
export interface TrackingDeps extends Pick<DiskDeps, 'images' | 'paths' | 'qemuUser'> {
  /** Makes an overlay of an empty file; by a storage daemon if not given. */
  readonly createTrackingOverlay?: typeof createTrackingOverlay;
}

/**
 * Overlays through which libvirt tracks which blocks a guest changes, by volume; those that are due are made. An
 * overlay that is there already stays: it knows what changed.
 *
 * @throws {LauncherError} `DiskFailed` naming volume and image.
 * @source KubeVirt v1.9.0 pkg/storage/cbt/cbt.go
 */
export async function ensureTrackingOverlays(deps: TrackingDeps, vmi: Vmi): Promise<ReadonlyMap<string, string>> {
  const overlays = new Map<string, string>();
  const state = vmi.status?.changedBlockTracking?.state ?? '';
  if (!TRACKING_STATES.has(state)) return overlays;
  for (const volume of vmi.spec.volumes ?? []) {
    if (!isTracked(volume)) continue;
    const overlay = trackingOverlayImage(deps.paths, volume.name, isNonRoot(vmi));
    overlays.set(volume.name, overlay);
    const isDue = state === 'Initializing' || isBeingPlugged(vmi, volume);
    if (isDue && !(await exists(overlay))) await makeOverlay(deps, vmi, volume, overlay);
  }
  return overlays;
}

function isTracked(volume: Volume): boolean {
  return volume.persistentVolumeClaim !== undefined || volume.dataVolume !== undefined || volume.hostDisk !== undefined;
}

function isBeingPlugged(vmi: Vmi, volume: Volume): boolean {
  const status = vmi.status?.volumeStatus?.find(({ name }) => name === volume.name);
  return status?.hotplugVolume !== undefined && status.phase === 'MountedToPod';
}

/** Made under another name first: half an overlay would be taken for a whole one by the next launcher. */
async function makeOverlay(deps: TrackingDeps, vmi: Vmi, volume: Volume, overlay: string): Promise<void> {
  const staging = `${overlay}.staging`;
  const { path, isDevice } = await findImage(deps, vmi, volume);
  try {
    await mkdir(dirname(overlay), { recursive: true, mode: 0o755 });
    await writeFile(staging, '', { mode: OVERLAY_MODE });
    const { virtualSize } = await deps.images.info(path);
    const create = deps.createTrackingOverlay ?? createTrackingOverlay;
    await create({ overlay: staging, image: path, isBlockDevice: isDevice, bytes: virtualSize });
    await giveToQemu(deps, staging);
    await rename(staging, overlay);
  } catch (error) {
    throw diskError(`failed to create the overlay of volume ${volume.name} over ${path}: `, error);
  } finally {
    await rm(staging, { force: true });
  }
}

/** Where a volume's data is, and whether that is a block device. */
async function findImage(
  deps: TrackingDeps,
  vmi: Vmi,
  volume: Volume,
): Promise<{ readonly path: string; readonly isDevice: boolean }> {
  const { paths } = deps;
  const isPlugged = vmi.status?.volumeStatus?.some(
    ({ name, hotplugVolume }) => name === volume.name && hotplugVolume !== undefined,
  );
  const device = isPlugged === true ? hotplugPath(paths, volume.name, true) : blockDevice(volume.name);
  if (volume.hostDisk === undefined && (await isBlockDevice(device))) return { path: device, isDevice: true };
  const file =
    isPlugged === true
      ? hotplugPath(paths, volume.name, false)
      : filesystemImage(paths, volume.name, volume.hostDisk?.path);
  return { path: file, isDevice: false };
}
