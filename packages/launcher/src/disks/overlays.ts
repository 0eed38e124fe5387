import type { Vmi, Volume } from '@virtwire/vm-model';
import { quantityValue } from '@virtwire/vm-model';

import type { ImageInfo } from '../converter/circumstances.ts';
import {
  blockDevice,
  containerDiskImage,
  emptyDiskImage,
  filesystemImage,
  overlayImage,
} from '../converter/volume-paths.ts';
import { LauncherError } from '../errors.ts';
import { exists, giveToQemu, makeParent } from './files.ts';
import type { DiskDeps } from './ports.ts';

const QEMU_IMG = 'qemu-img';
const OVERLAY_MODE = 0o640;
const MIB = 1n << 20n;

/** What making images needs. */
type ImageDeps = Pick<DiskDeps, 'tools' | 'paths' | 'qemuUser'>;

/**
 * An overlay over every containerDisk, so that the guest's writes never reach the shared image. An overlay that is
 * there already stays.
 *
 * @throws {Error} naming the volume's image when that is not there.
 * @source KubeVirt v1.9.0 pkg/container-disk/container-disk.go, CreateEphemeralImages
 */
export async function ensureContainerDiskOverlays(
  deps: ImageDeps,
  vmi: Vmi,
  images: ReadonlyMap<string, ImageInfo>,
): Promise<void> {
  for (const [index, volume] of (vmi.spec.volumes ?? []).entries()) {
    if (volume.containerDisk === undefined) continue;
    const backing = containerDiskImage(deps.paths, index);
    if (!(await exists(backing))) {
      throw new LauncherError('DiskFailed', `no supported file disk found for volume found in: ${backing}`);
    }
    await ensureOverlay(deps, volume, backing, images.get(volume.name)?.format ?? 'raw');
  }
}

/** An overlay over every ephemeral claim. */
export async function ensureEphemeralOverlays(
  deps: ImageDeps,
  vmi: Vmi,
  blockVolumes: ReadonlySet<string>,
): Promise<void> {
  for (const volume of vmi.spec.volumes ?? []) {
    if (volume.ephemeral === undefined) continue;
    const backing = blockVolumes.has(volume.name) ? blockDevice(volume.name) : filesystemImage(deps.paths, volume.name);
    await ensureOverlay(deps, volume, backing, 'raw');
  }
}

/**
 * A sparse image for every emptyDisk.
 *
 * @throws {LauncherError} `DiskFailed` for a capacity under 1 MiB.
 * @source KubeVirt v1.9.0 pkg/emptydisk/emptydisk.go
 */
export async function ensureEmptyDisks(deps: ImageDeps, vmi: Vmi): Promise<void> {
  for (const { name, emptyDisk } of vmi.spec.volumes ?? []) {
    if (emptyDisk === undefined) continue;
    const bytes = quantityValue(emptyDisk.capacity);
    const size = bytes - (bytes % MIB);
    if (size <= 0n) throw new LauncherError('DiskFailed', `the size for volume ${name} is too low`);
    const path = emptyDiskImage(deps.paths, name);
    await makeParent(path);
    if (!(await exists(path))) {
      await deps.tools.run(QEMU_IMG, ['create', '-f', 'qcow2', path, String(size)]);
    }
    await giveToQemu(deps, path);
  }
}

async function ensureOverlay(deps: ImageDeps, volume: Volume, backing: string, format: string): Promise<void> {
  const path = overlayImage(deps.paths, volume.name);
  await makeParent(path);
  if (await exists(path)) return;
  await deps.tools.run(QEMU_IMG, ['create', '-f', 'qcow2', '-b', backing, '-F', format, path]);
  await giveToQemu(deps, path, OVERLAY_MODE);
}
