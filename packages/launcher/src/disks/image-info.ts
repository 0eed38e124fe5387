import { constants } from 'node:fs';
import { type FileHandle, open, stat, statfs, unlink } from 'node:fs/promises';

import type { ImageInfo } from '../converter/circumstances.ts';
import { exists } from './files.ts';
import { goFileError } from './go-error.ts';
import type { ImagePort } from './ports.ts';

/** QEMU probes formats by this much of an image. */
const PROBE_BYTES = 2048;
const QCOW_MAGIC = 0x514649fb;
const MAX_BACKING_NAME = 1023;
const INCOMPATIBLE_DATA_FILE = 1n << 2n;
const BLOCK_UNIT = 512;

/**
 * First bytes of the formats that QEMU would recognise, so that none of them is taken for a raw image.
 *
 * @source QEMU block/*.c, bdrv_probe functions
 */
const MAGICS: readonly (readonly [string, number, Buffer])[] = [
  ['vmdk', 0, Buffer.from('KDMV')],
  ['vmdk', 0, Buffer.from('COWD')],
  ['vmdk', 0, Buffer.from('# Disk DescriptorFile')],
  ['vhdx', 0, Buffer.from('vhdxfile')],
  ['vpc', 0, Buffer.from('conectix')],
  ['qed', 0, Buffer.from('QED\0')],
  ['luks', 0, Buffer.from('LUKS\xba\xbe', 'latin1')],
  ['parallels', 0, Buffer.from('WithoutFreeSpace')],
  ['parallels', 0, Buffer.from('WithouFreSpacExt')],
  ['bochs', 0, Buffer.from('Bochs Virtual HD Image')],
  ['cloop', 0, Buffer.from('#!/bin/sh\n#V2.0 Format\nmodprobe cloop')],
  ['vdi', 0x40, Buffer.from([0x7f, 0x10, 0xda, 0xbe])],
];

/** Image facts read from the files themselves: no process is started, which a start of a VM would wait for. */
export function createImagePort(): ImagePort {
  return { info: readImageInfo, hasDirectIo, freeBytes, storedBytes };
}

/**
 * Format, sizes and backing file of a disk image or block device, as `qemu-img info` would say.
 *
 * @throws {Error} when the file cannot be read or its qcow2 header is broken.
 */
export async function readImageInfo(path: string): Promise<ImageInfo> {
  const file = await openImage(path);
  try {
    const head = Buffer.alloc(PROBE_BYTES);
    const { bytesRead } = await file.read(head, 0, PROBE_BYTES, 0);
    const found = await file.stat();
    const actualSize = found.blocks * BLOCK_UNIT;
    if (bytesRead >= 8 && head.readUInt32BE(0) === QCOW_MAGIC) {
      return { ...(await readQcow(file, path, head.subarray(0, bytesRead))), actualSize };
    }
    const magic = MAGICS.find(([, at, bytes]) => head.subarray(at, at + bytes.length).equals(bytes));
    const size = found.isBlockDevice() ? await deviceSize(path) : found.size;
    return { format: magic?.[0] ?? 'raw', backingFile: '', actualSize, virtualSize: size };
  } finally {
    await file.close();
  }
}

/** An image with an external data file reads that file, so it counts as backed by it. */
async function readQcow(file: FileHandle, path: string, head: Buffer): Promise<Omit<ImageInfo, 'actualSize'>> {
  const version = head.readUInt32BE(4);
  if (version === 1) return { format: 'qcow', backingFile: '', virtualSize: 0 };
  if (head.length < 104) throw new Error(`${path}: the qcow2 header is cut off`);
  const virtualSize = Number(head.readBigUInt64BE(24));
  const nameAt = Number(head.readBigUInt64BE(8));
  const nameLength = head.readUInt32BE(16);
  let backingFile = '';
  if (nameAt !== 0) {
    if (nameLength > MAX_BACKING_NAME) throw new Error(`${path}: the qcow2 backing file name is too long`);
    const name = Buffer.alloc(nameLength);
    const { bytesRead } = await file.read(name, 0, nameLength, nameAt);
    if (bytesRead !== nameLength) throw new Error(`${path}: the qcow2 header is cut off`);
    backingFile = name.toString('utf8');
  }
  const hasDataFile = version >= 3 && (head.readBigUInt64BE(72) & INCOMPATIBLE_DATA_FILE) !== 0n;
  return { format: 'qcow2', backingFile: hasDataFile ? 'an external data file' : backingFile, virtualSize };
}

async function openImage(path: string): Promise<FileHandle> {
  try {
    return await open(path, constants.O_RDONLY);
  } catch (error) {
    throw goFileError(error, 'open', path);
  }
}

async function deviceSize(path: string): Promise<number> {
  const file = await open(path, constants.O_RDONLY);
  try {
    const { rdev } = await file.stat();
    const { major, minor } = splitRdev(rdev);
    const sectors = await open(`/sys/dev/block/${String(major)}:${String(minor)}/size`, constants.O_RDONLY);
    try {
      return Number((await sectors.readFile('utf8')).trim()) * BLOCK_UNIT;
    } finally {
      await sectors.close();
    }
  } finally {
    await file.close();
  }
}

/** Parts of a device number as Linux packs them. */
export function splitRdev(rdev: number): { readonly major: number; readonly minor: number } {
  return { major: (rdev >>> 8) & 0xfff, minor: (rdev & 0xff) | ((rdev >>> 12) & 0xfff00) };
}

/**
 * @throws {Error} when the file cannot be opened for another reason than a missing O_DIRECT.
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/converter/converter.go, directIOChecker
 */
async function hasDirectIo(path: string): Promise<boolean> {
  const isNew = !(await exists(path));
  const flags = constants.O_RDONLY | (isNew ? constants.O_CREAT : 0);
  try {
    const file = await open(path, flags | constants.O_DIRECT, 0o600);
    await file.close();
    return true;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EINVAL') return false;
    throw goFileError(error, 'open', path);
  } finally {
    if (isNew) await unlink(path).catch(() => undefined);
  }
}

async function freeBytes(path: string): Promise<bigint> {
  const { bavail, bsize } = await statfs(path, { bigint: true });
  return bavail * bsize;
}

async function storedBytes(path: string): Promise<bigint | undefined> {
  try {
    const found = await stat(path);
    return BigInt(found.isBlockDevice() ? await deviceSize(path) : found.blocks * BLOCK_UNIT);
  } catch {
    return undefined;
  }
}

/** Whether every byte of an image has its place on disk already. */
export async function isPreallocated(images: Pick<ImagePort, 'info'>, path: string): Promise<boolean> {
  try {
    const { virtualSize, actualSize } = await images.info(path);
    return virtualSize <= actualSize;
  } catch {
    return false;
  }
}

/** Whether a path is a block device; anything else, missing too, is not. */
export async function isBlockDevice(path: string): Promise<boolean> {
  try {
    return (await stat(path)).isBlockDevice();
  } catch {
    return false;
  }
}
