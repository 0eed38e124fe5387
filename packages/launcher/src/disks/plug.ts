import { access, constants, rm, stat } from 'node:fs/promises';

import type { DomainDisk, Vmi } from '@virtwire/vm-model';

import { isNonRoot } from '../converter/vmi-traits.ts';
import { trackingOverlayImage } from '../converter/volume-paths.ts';
import type { BlockInfo } from '../domain/libvirt-port.ts';
import type { DevicePreparation, DiskGrowth } from '../domain/update-devices.ts';
import { backendPath } from '../converter/disk-backend.ts';
import { withDriverMode } from './driver-modes.ts';
import { targetSize } from './growth.ts';
import type { DiskDeps } from './ports.ts';

const BYTES = 1;
const CAPACITY = 2;

/** What disks that come and go need of their pod. */
export type DiskPlug = Pick<
  DevicePreparation<never>,
  'isReady' | 'completeDisk' | 'discardDisk' | 'possibleSize' | 'growth'
>;

/** Creates the pod's side of disks that are plugged, unplugged and grown while the VM runs. */
export function createDiskPlug(deps: Pick<DiskDeps, 'images' | 'log' | 'paths'>): DiskPlug {
  return {
    async isReady(disk) {
      const isDevice = sourceDevice(disk) !== '';
      try {
        await access(backendPath(disk), isDevice ? constants.R_OK : constants.R_OK | constants.W_OK);
        return !(await stat(backendPath(disk))).isDirectory();
      } catch {
        return false;
      }
    },
    completeDisk: (disk) => withDriverMode(deps, disk),
    async discardDisk(vmi: Vmi, disk) {
      if ((vmi.status?.changedBlockTracking?.state ?? '') === '') return;
      await rm(trackingOverlayImage(deps.paths, disk.Alias?.Name ?? '', isNonRoot(vmi)), { force: true });
    },
    // Files that vanish meanwhile are libvirt's to complain of.
    possibleSize: (disk) => possibleSize(deps, disk).catch(() => undefined),
    growth: (disk, block) => decideGrowth(deps, disk, block),
  };
}

function sourceDevice(disk: DomainDisk): string {
  return (disk.Source?.DataStore?.Source ?? disk.Source)?.Dev ?? '';
}

async function possibleSize({ images }: Pick<DiskDeps, 'images'>, disk: DomainDisk): Promise<bigint | undefined> {
  const path = backendPath(disk);
  const stored = await images.storedBytes(path);
  if (stored === undefined || sourceDevice(disk) !== '') return stored;
  if (disk.Capacity === undefined || disk.FilesystemOverhead === undefined) return undefined;
  return targetSize(disk.Capacity, disk.FilesystemOverhead, stored + (await images.freeBytes(path)));
}

/** @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/manager.go, possibleGuestSize */
async function decideGrowth(
  { images }: Pick<DiskDeps, 'images'>,
  disk: DomainDisk,
  { capacity, allocation, physical }: BlockInfo,
): Promise<DiskGrowth | undefined> {
  const path = backendPath(disk);
  if (sourceDevice(disk) !== '') {
    if (capacity >= physical) return undefined;
    if (disk.Source?.DataStore === undefined) return { bytes: 0n, flags: BYTES | CAPACITY };
    const { virtualSize } = await images.info(path);
    return virtualSize === 0 ? undefined : { bytes: BigInt(virtualSize), flags: BYTES };
  }
  if (disk.Capacity === undefined || disk.FilesystemOverhead === undefined) return undefined;
  // What libvirt counts as allocated is what the tool would say of an image that it could open.
  const available = allocation + (await images.freeBytes(path));
  const bytes = targetSize(disk.Capacity, disk.FilesystemOverhead, available);
  return bytes === undefined || bytes <= capacity ? undefined : { bytes, flags: BYTES };
}
