import * as fs from 'node:fs';
import { errnoOf, HostError } from '../errors.ts';
import { libc, throwErrno } from '../libc.ts';
import type { NetworkNamespace } from './namespace.ts';

const TUNSETIFF = 0x400454ca;
const TUNSETPERSIST = 0x400454cb;
const TUNSETOWNER = 0x400454cc;
const TUNSETGROUP = 0x400454ce;
const IFF_TAP = 0x0002;
const IFF_MULTI_QUEUE = 0x0100;
const IFF_NO_PI = 0x1000;
const IFF_ONE_QUEUE = 0x2000;
const IFF_TUN_EXCL = 0x8000;
const NAME_BYTES = 16;
const IFREQ_BYTES = 40;

/** A tap device to be made. */
export interface NewTap {
  readonly name: string;
  readonly uid: number;
  readonly gid: number;
  /** More than one makes a tap to which that many descriptors can be attached. */
  readonly queues: number;
}

/**
 * Makes a persistent tap device in a network namespace and gives it to a user.
 *
 * @throws {HostError} errno `EBUSY` or `EEXIST` when the name is taken (single-queue taps).
 * @source KubeVirt v1.9.0 cmd/virt-chroot/tap-device-maker.go
 */
export function createTap(namespace: NetworkNamespace, tap: NewTap): void {
  if (Buffer.byteLength(tap.name) >= NAME_BYTES) throw new HostError('Syscall', `tap name ${tap.name} is too long`);
  namespace.run(() => {
    const fd = openTun();
    try {
      const request = Buffer.alloc(IFREQ_BYTES);
      request.write(tap.name, 0, 'latin1');
      const single = IFF_TAP | IFF_TUN_EXCL | IFF_ONE_QUEUE;
      request.writeUInt16LE(tap.queues > 1 ? IFF_TAP | IFF_MULTI_QUEUE | IFF_NO_PI : single, NAME_BYTES);
      const doing = `create tap ${tap.name}`;
      if (libc().ioctl(fd, TUNSETIFF, request) !== 0) throwErrno(doing);
      for (const [code, value] of [
        [TUNSETOWNER, tap.uid],
        [TUNSETGROUP, tap.gid],
        [TUNSETPERSIST, 1],
      ] as const) {
        if (libc().ioctlInt(fd, code, value) !== 0) throwErrno(doing);
      }
    } finally {
      fs.closeSync(fd);
    }
  });
}

function openTun(): number {
  try {
    return fs.openSync('/dev/net/tun', fs.constants.O_RDWR);
  } catch (caught) {
    throw new HostError('Syscall', `open /dev/net/tun: ${String(caught)}`, { errno: errnoOf(caught), cause: caught });
  }
}
