import * as fs from 'node:fs';
import { libc, throwErrno } from '../libc.ts';

/** Numbers of the kernel's socket interface. */
export const SOCKET = {
  inet: 2,
  inet6: 10,
  datagram: 2,
  raw: 3,
  nonBlocking: 0o4000,
  closeOnExec: 0o2000000,
} as const;

const SOL_SOCKET = 1;
const SO_BINDTODEVICE = 25;

/** A socket that is being made. */
export interface NewSocket {
  readonly fd: number;
  set(level: number, option: number, value: Uint8Array): void;
  /** An option whose value is a number. */
  setNumber(level: number, option: number, value: number): void;
}

/** What is asked of the kernel, and what it is for. */
export interface SocketWish {
  readonly family: number;
  readonly type: number;
  readonly protocol: number;
  /** Link whose packets alone are seen and sent. */
  readonly device: string;
  /** Begins the message of every error. */
  readonly doing: string;
}

/**
 * Makes a socket tied to one link, in the network namespace of the calling thread; closed again when `prepare` throws.
 *
 * @throws {HostError} `Syscall`
 */
export function makeSocket(wish: SocketWish, prepare: (socket: NewSocket) => void): number {
  const { family, type, protocol, device, doing } = wish;
  const fd = libc().socket(family, type | SOCKET.closeOnExec, protocol);
  if (fd < 0) throwErrno(doing);
  const set: NewSocket['set'] = (level, option, value) => {
    if (libc().setsockopt(fd, level, option, Buffer.from(value), value.length) !== 0) throwErrno(doing);
  };
  try {
    set(SOL_SOCKET, SO_BINDTODEVICE, Buffer.from(`${device}\0`, 'latin1'));
    prepare({
      fd,
      set,
      setNumber(level, option, value) {
        const bytes = Buffer.alloc(4);
        bytes.writeInt32LE(value);
        set(level, option, bytes);
      },
    });
    return fd;
  } catch (caught) {
    fs.closeSync(fd);
    throw caught;
  }
}
