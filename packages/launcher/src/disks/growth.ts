import type { DomainDisk, DomainSpec, Int64 } from '@virtwire/vm-model';

import { backendPath } from '../converter/disk-backend.ts';
import type { DiskDeps } from './ports.ts';

const MIB = 1n << 20n;
const OVERHEAD_SCALE = 1_000_000_000;
/** Storage that cannot allocate at once is written to, block by block; a tool that is stopped halfway leaves an odd size. */
const RESIZE_LIMIT_MS = 600_000;

/** What growing images needs. */
type GrowthDeps = Pick<DiskDeps, 'tools' | 'images' | 'log'>;

/**
 * Grows disk images of claims that became larger since the image was made. Failing to is only logged: the guest can
 * run with the smaller disk.
 *
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/manager.go, expandDiskImagesOffline
 */
export async function growDisksOffline(deps: GrowthDeps, spec: DomainSpec): Promise<void> {
  for (const disk of spec.Devices.Disks ?? []) {
    try {
      await growDisk(deps, disk);
    } catch (error) {
      deps.log.error({ reason: error }, `failed to expand disk image ${backendPath(disk)}`);
    }
  }
}

/** An overlay says how large the guest's disk is; growing it makes its data grow too, but not the other way round. */
async function growDisk({ images, tools, log }: GrowthDeps, disk: DomainDisk): Promise<void> {
  const { Source: shown, Capacity, FilesystemOverhead } = disk;
  const data = (shown?.DataStore?.Source ?? shown)?.File ?? '';
  const path = shown?.File ?? '';
  if (Capacity === undefined || FilesystemOverhead === undefined || data === '' || path === '') return;
  const { virtualSize, actualSize } = await images.info(data);
  const shownSize = path === data ? virtualSize : (await images.info(path)).virtualSize;
  const available = BigInt(actualSize) + (await images.freeBytes(data));
  const target = targetSize(Capacity, FilesystemOverhead, available);
  if (target === undefined || target <= BigInt(Math.min(virtualSize, shownSize))) return;
  log.info(`pre-start expansion of image ${path} to size ${String(target)}`);
  const preallocation = virtualSize <= actualSize ? 'falloc' : 'off';
  const args = ['resize', `--preallocation=${preallocation}`, path, String(target)];
  await tools.run('qemu-img', args, { timeoutMs: RESIZE_LIMIT_MS });
}

/**
 * Size that an image on a filesystem claim may have: what the claim holds less the file system's own share, whole MiB.
 *
 * @param overhead share of the file system as text, `0.055`; undefined result when it is no number of 0 to 1.
 */
export function targetSize(capacity: Int64, overhead: string, available: bigint): bigint | undefined {
  const share = Number(overhead);
  if (overhead.trim() === '' || !(share >= 0 && share <= 1)) return undefined;
  const size = BigInt(capacity) < available ? BigInt(capacity) : available;
  // A double holds the product as the model's does: sizes are far below 2^53.
  const usable = BigInt(Math.floor((1 - Math.round(share * OVERHEAD_SCALE) / OVERHEAD_SCALE) * Number(size)));
  return usable - (usable % MIB);
}
