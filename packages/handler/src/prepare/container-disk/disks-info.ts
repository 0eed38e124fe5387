import * as fs from 'node:fs';
import { SafePath } from '@virtwire/host';
import type { cmdV1 } from '@virtwire/shared-proto';
import type { Vmi } from '../../model.ts';
import type { Isolation } from '../parts.ts';

/** What launchers before v1.6 are told of one image. */
type DiskInfo = Omit<cmdV1.DiskInfo, '_unknownFields'>;

/** As launchers see them; images are named after the place of their volume. */
const IMAGES = 'var/run/kubevirt/container-disks';
const QCOW2_MAGIC = 0x51_46_49_fb;
const HEADER_BYTES = 4_096;
const MAX_BACKING_NAME = 1_023;
const BLOCK_BYTES = 512n;

/** True when a VMI has container disks among its volumes. */
export function hasContainerDisks(vmi: Vmi): boolean {
  return (vmi.spec.volumes ?? []).some(({ containerDisk }) => containerDisk !== undefined);
}

/**
 * Reads what launchers before v1.6 do not find out by themselves: format and sizes of each container disk's image, by
 * the volume's name. An image that is not there yet is left out.
 *
 * @source KubeVirt v1.5.0 pkg/virt-handler/container-disk (disksInfo of the sync options)
 */
export function readDisksInfo(vmi: Vmi, launcher: Isolation): ReadonlyMap<string, DiskInfo> {
  const infos = new Map<string, DiskInfo>();
  using root = SafePath.openRoot(launcher.rootPath);
  for (const [index, volume] of (vmi.spec.volumes ?? []).entries()) {
    if (volume.containerDisk === undefined) continue;
    const info = readImage(root, `${IMAGES}/disk_${index}.img`);
    if (info !== undefined) infos.set(volume.name, info);
  }
  return infos;
}

function readImage(root: SafePath, relative: string): DiskInfo | undefined {
  let found: SafePath;
  try {
    // A process of the pod sees /var/run as a link.
    found = root.resolve(relative);
  } catch {
    return undefined;
  }
  using image = found;
  if (!image.stat().isFile()) return undefined;
  const fd = fs.openSync(image.procPath, fs.constants.O_RDONLY);
  try {
    const { size, blocks } = fs.fstatSync(fd, { bigint: true });
    const header = Buffer.alloc(HEADER_BYTES);
    const length = fs.readSync(fd, header, 0, HEADER_BYTES, 0);
    return { ...parseImageHeader(header.subarray(0, length), size), actualSize: blocks * BLOCK_BYTES };
  } finally {
    fs.closeSync(fd);
  }
}

/**
 * Tells a qcow2 image from a raw one. The header is the image author's: whatever does not fit makes the image raw.
 *
 * @param size of the file, which is what a raw image holds.
 */
export function parseImageHeader(header: Buffer, size: bigint): Omit<DiskInfo, 'actualSize'> {
  const isQcow2 = header.length >= 32 && header.readUInt32BE(0) === QCOW2_MAGIC && header.readUInt32BE(4) >= 2;
  if (!isQcow2) return { format: 'raw', backingFile: '', virtualSize: size };
  const at = header.readBigUInt64BE(8);
  const length = header.readUInt32BE(16);
  const isInside = at > 0n && length <= MAX_BACKING_NAME && at + BigInt(length) <= BigInt(header.length);
  const backingFile = isInside ? header.toString('utf8', Number(at), Number(at) + length) : '';
  return { format: 'qcow2', backingFile, virtualSize: header.readBigUInt64BE(24) };
}
