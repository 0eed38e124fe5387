import * as fs from 'node:fs';
import * as path from 'node:path';
import { errnoOf, SafePath } from '@virtwire/host';
import { quantityValue } from '@virtwire/vm-model';
import type { ClusterConfig } from '../../cluster-config.ts';
import { errorText, HandlerError } from '../../errors.ts';
import type { EventRecorder } from '../../events/recorder.ts';
import { vmiRef } from '../../model.ts';
import type { Vmi, Volume } from '../../model.ts';
import type { Isolation } from '../parts.ts';

/** What creating host disks needs. */
export interface HostDiskDeps {
  readonly events: EventRecorder;
  readonly config: () => ClusterConfig;
  /** Gives a new image to QEMU's user; `inPod` is its path below the launcher's root. Default: by its descriptor. */
  readonly giveToQemu?: (file: SafePath, inPod: string) => void;
}

const giveAway = (file: SafePath): void => void file.ensureOwner(QEMU_ID, QEMU_ID);

const RUN_LINK = '/var/run/';
const DISKS_DIR = '/var/run/kubevirt-private/vmi-disks';
const QEMU_ID = 107;
const FILE_MODE = 0o644;

/** Size to create, and whether the volume has less than was asked for. */
interface DiskSize {
  readonly bytes: bigint;
  readonly isTolerated: boolean;
}

/**
 * How large a disk can become on a volume with so much space.
 *
 * @returns undefined when even the tolerated size does not fit.
 * @source KubeVirt v1.9.0 pkg/host-disk/host-disk.go:180-330
 */
export function fittingSize(wanted: bigint, available: bigint, tolerationPercent: number): DiskSize | undefined {
  if (available <= 0n) return undefined;
  if (wanted <= available) return { bytes: wanted, isTolerated: false };
  const atLeast = (wanted * BigInt(100 - tolerationPercent)) / 100n;
  return atLeast <= available ? { bytes: available, isTolerated: true } : undefined;
}

function availableBytes(directory: SafePath, reserve: number): bigint {
  const { bavail, bsize } = fs.statfsSync(directory.procPath, { bigint: true });
  return bavail * bsize - BigInt(reserve);
}

/** A sparse file of that size, owned by QEMU's user; nothing is left behind when it cannot be made. */
function createSparse(directory: SafePath, name: string, bytes: bigint, give: (file: SafePath) => void): void {
  directory.touch(name, FILE_MODE);
  try {
    using file = directory.join(name);
    fs.truncateSync(file.procPath, Number(bytes));
    give(file);
  } catch (error) {
    directory.unlink(name);
    throw error;
  }
}

function createOne(
  { events, config, giveToQemu = giveAway }: HostDiskDeps,
  vmi: Vmi,
  root: SafePath,
  volume: Volume,
): void {
  const disk = volume.hostDisk;
  if (disk?.type !== 'DiskOrCreate' || disk.path === '') return;
  const name = path.basename(disk.path);
  const inPod = `${DISKS_DIR}/${volume.name}`;
  // `/var/run` is a link in the images: it is followed inside the root, what comes after it is not (FM-13.1).
  using run = root.resolve(RUN_LINK);
  using directory = run.join(inPod.slice(RUN_LINK.length));
  if (directory.has(name)) {
    using _image = directory.join(name); // refuses a link
    return;
  }
  const { minimumReservePvcBytes: reserve, lessPvcSpaceTolerationPercent: percent } = config();
  const wanted = quantityValue(disk.capacity);
  if (wanted <= 0n) throw new HandlerError('Invalid', `unable to create ${inPod}/${name}: it has no capacity`);
  const available = availableBytes(directory, reserve);
  const size = fittingSize(wanted, available, percent);
  if (size === undefined) {
    const target = `${inPod}/${name}`;
    throw new HandlerError(
      'Invalid',
      `unable to create ${target}, not enough space, demanded size ${wanted} B is bigger than available space ${available} B, also after taking ${percent} % toleration into account`,
    );
  }
  if (size.isTolerated) {
    const message = `PV size too small: expected ${wanted} B, found ${available} B. Using it anyway, it is within ${percent} % toleration`;
    events.event(vmiRef(vmi), 'Normal', 'ToleratedSmallPV', message);
  }
  createSparse(directory, name, size.bytes, (file) => giveToQemu(file, `${inPod}/${name}`));
}

/**
 * Creates the missing images of a VMI's host disks, as sparse raw files below the launcher's root.
 *
 * @throws {HandlerError} with KubeVirt's text when a volume is too small or a path cannot be used.
 * @source KubeVirt v1.9.0 pkg/host-disk/host-disk.go:180-330
 */
export async function createHostDisks(deps: HostDiskDeps, vmi: Vmi, launcher: Isolation): Promise<void> {
  try {
    using root = SafePath.openRoot(launcher.rootPath);
    for (const volume of vmi.spec.volumes ?? []) createOne(deps, vmi, root, volume);
  } catch (error) {
    if (errnoOf(error) === 'EEXIST') return;
    throw new HandlerError('Internal', `preparing host-disks failed: ${errorText(error)}`, { cause: error });
  }
}
