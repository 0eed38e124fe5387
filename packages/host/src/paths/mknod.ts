import { libc, throwErrno } from '../libc.ts';

const S_IFCHR = 0o020000;
const S_IFBLK = 0o060000;

/** Creates a device node below an open directory. */
export function makeNode(
  directoryFd: number,
  name: string,
  type: 'block' | 'char',
  mode: number,
  device: { readonly major: number; readonly minor: number },
  display: string,
): void {
  const kind = type === 'block' ? S_IFBLK : S_IFCHR;
  if (libc().mknodat(directoryFd, name, kind | mode, makeDevice(device.major, device.minor)) !== 0) {
    throwErrno(`mknod ${display}`);
  }
}

/** A device number as glibc's makedev packs it. */
function makeDevice(major: number, minor: number): bigint {
  const [ma, mi] = [BigInt(major), BigInt(minor)];
  return ((ma & 0xfffff000n) << 32n) | ((ma & 0xfffn) << 8n) | ((mi & 0xffffff00n) << 12n) | (mi & 0xffn);
}

/** The two numbers of a device as `stat` reports it in `rdev`. */
export function splitDevice(device: number | bigint): { major: number; minor: number } {
  const d = BigInt(device);
  return {
    major: Number(((d >> 32n) & 0xfffff000n) | ((d >> 8n) & 0xfffn)),
    minor: Number(((d >> 12n) & 0xffffff00n) | (d & 0xffn)),
  };
}
