import { lstat, mkdir, readdir, readlink, symlink } from 'node:fs/promises';
import { basename, dirname } from 'node:path/posix';

import type { Vmi } from '@virtwire/vm-model';

import { containerDiskImage } from '../converter/volume-paths.ts';
import { LauncherError } from '../errors.ts';
import { goFileError, isMissing } from './go-error.ts';
import type { DiskDeps } from './ports.ts';
import { nonEmpty } from '../converter/non-empty.ts';

const DEFAULT_FOLDER = 'disk';
const FINDING_DISK = 'failed to find disk file from ImageVolume: ';
const FINDING_KERNEL = 'error getting kernel boot artifact path from ImageVolume: ';

/**
 * Links from where the domain looks for container disks and kernels to the image volumes that the kubelet mounted.
 *
 * @throws {LauncherError} `DiskFailed` when an image holds no disk, or several.
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/manager.go, linkImageVolumeFilePaths
 */
export async function linkImageVolumes(deps: Pick<DiskDeps, 'paths'>, vmi: Vmi): Promise<void> {
  const { imageVolumeDir, kernelBootDir, containerDiskDir } = deps.paths;
  for (const [index, { containerDisk }] of (vmi.spec.volumes ?? []).entries()) {
    if (containerDisk === undefined) continue;
    const root = `${imageVolumeDir}/disk_${String(index)}`;
    const target = await targetOf(root, nonEmpty(containerDisk.path) ?? (await onlyFile(root)), FINDING_DISK);
    await ensureLink(target, containerDiskImage(deps.paths, index));
  }
  const container = vmi.spec.domain.firmware?.kernelBoot?.container;
  for (const path of [container?.kernelPath, container?.initrdPath]) {
    if (!path) continue;
    const target = await targetOf(kernelBootDir, path, FINDING_KERNEL);
    await ensureLink(target, `${containerDiskDir}/kernel-boot/${basename(path)}`);
  }
}

/** The path of the one file in an image's disk folder. */
async function onlyFile(root: string): Promise<string> {
  const folder = `${root}/${DEFAULT_FOLDER}`;
  let names: readonly string[];
  try {
    names = await readdir(folder);
  } catch (error) {
    throw LauncherError.from(goFileError(error, 'open', folder), 'DiskFailed', FINDING_DISK);
  }
  const [first] = names;
  if (first === undefined) {
    throw new LauncherError('DiskFailed', `${FINDING_DISK}no file found in folder ${folder}, no disk present`);
  }
  if (names.length > 1) {
    const message = `${FINDING_DISK}more than one file found in folder ${folder}, only one disk is allowed`;
    throw new LauncherError('DiskFailed', message);
  }
  return `${DEFAULT_FOLDER}/${first}`;
}

/**
 * Joins a path inside an image to the place where the image is mounted. The image is the user's: a link in it could
 * lead anywhere, so none is followed.
 */
async function targetOf(root: string, inside: string, doing: string): Promise<string> {
  let path = root;
  for (const part of inside.split('/').filter((name) => name !== '' && name !== '.')) {
    if (part === '..') throw new LauncherError('DiskFailed', `${doing}the path ${inside} leaves the image at ${root}`);
    path = `${path}/${part}`;
    let isLink: boolean;
    try {
      isLink = (await lstat(path)).isSymbolicLink();
    } catch (error) {
      throw LauncherError.from(goFileError(error, 'lstat', path), 'DiskFailed', doing);
    }
    if (isLink) throw new LauncherError('DiskFailed', `${doing}${path} is a link, which is not followed`);
  }
  return path;
}

async function ensureLink(target: string, link: string): Promise<void> {
  await mkdir(dirname(link), { recursive: true, mode: 0o755 });
  try {
    if ((await readlink(link)) === target) return;
    throw new LauncherError('DiskFailed', `${link} leads elsewhere than to ${target}`);
  } catch (error) {
    if (!isMissing(error)) throw error;
    await symlink(target, link);
  }
}
