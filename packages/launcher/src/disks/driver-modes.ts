import type { DomainDisk, DomainSpec } from '@virtwire/vm-model';

import { backendPath } from '../converter/disk-backend.ts';
import { nonEmpty } from '../converter/non-empty.ts';
import { LauncherError } from '../errors.ts';
import { isPreallocated } from './image-info.ts';
import type { DiskDeps } from './ports.ts';

/** What the modes depend on. */
type ModeDeps = Pick<DiskDeps, 'images' | 'log'>;

/**
 * The domain with cache and IO modes that its storage takes. Done just before the define, since the images must be there.
 *
 * @throws {LauncherError} `DiskFailed` when a disk asks for a mode that its storage does not take.
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/converter/converter.go, SetDriverCacheMode, SetOptimalIOMode
 */
export async function withDriverModes(deps: ModeDeps, spec: DomainSpec): Promise<DomainSpec> {
  const disks = spec.Devices.Disks;
  if (disks === undefined) return spec;
  const Disks = await Promise.all(disks.map((disk) => withDriverMode(deps, disk)));
  return { ...spec, Devices: { ...spec.Devices, Disks } };
}

/** A disk with the cache and IO modes that its storage takes. */
export async function withDriverMode(deps: ModeDeps, disk: DomainDisk): Promise<DomainDisk> {
  const cache = await cacheMode(deps, disk);
  const io = nonEmpty(disk.Driver?.IO) ?? (await ioMode(deps, disk, cache));
  return { ...disk, Driver: { ...disk.Driver, Cache: cache, IO: io } };
}

async function cacheMode(deps: ModeDeps, disk: DomainDisk): Promise<string | undefined> {
  const wanted = disk.Driver?.Cache ?? '';
  const path = backendPath(disk);
  if (path === '') {
    if (disk.Device === 'cdrom') return disk.Driver?.Cache;
    throw new LauncherError('DiskFailed', 'unable to set a driver cache mode, disk has no backend path');
  }
  if (wanted !== '' && wanted !== 'none') return wanted;
  const backing = disk.BackingStore?.Source;
  const backingPath = nonEmpty(backing?.File) ?? backing?.Dev ?? '';
  const isSupported = (await hasDirectIo(deps, path)) && (backingPath === '' || (await hasDirectIo(deps, backingPath)));
  if (wanted === 'none' && !isSupported) {
    throw new LauncherError(
      'DiskFailed',
      `Unable to use 'none' cache mode, file system where ${path} is stored does not support direct I/O`,
    );
  }
  return isSupported ? 'none' : 'writethrough';
}

async function hasDirectIo(deps: ModeDeps, path: string): Promise<boolean> {
  try {
    return await deps.images.hasDirectIo(path);
  } catch (error) {
    deps.log.error({ reason: error }, `Direct IO check failed for ${path}`);
    return false;
  }
}

/** Native IO blocks while a sparse image grows, so it is for devices and whole images only. */
async function ioMode(deps: ModeDeps, disk: DomainDisk, cache: string | undefined): Promise<string | undefined> {
  if (cache !== 'none') return undefined;
  const path = backendPath(disk);
  const isBlock = (disk.Source?.DataStore?.Source?.Dev ?? disk.Source?.Dev ?? '') !== '';
  return isBlock || (await isPreallocated(deps.images, path)) ? 'native' : undefined;
}
