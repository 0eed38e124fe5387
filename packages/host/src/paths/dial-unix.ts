import * as fs from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { HostError } from '../errors.ts';
import { describeErrno, libc, throwErrno } from '../libc.ts';

const AF_UNIX = 1;
const SOCK_STREAM = 1;
const SOCK_CLOEXEC = 0o2000000;
const SOCK_NONBLOCK = 0o4000;
const RETRY_MS = 20;
/** Size of `sockaddr_un`: two bytes of family, a path of at most 107 bytes and its NUL. */
const ADDRESS_BYTES = 110;
const PATH_MAX_BYTES = 107;

/**
 * Connects to a unix socket without Node, for what Node's own sockets cannot do.
 *
 * @param path as the kernel gets it; `display` is what errors call it.
 * @returns the socket, non-blocking and closed on exec; the caller closes it.
 * @throws {HostError} `Syscall` when nobody listens, `ConnectTimeout` when the backlog stays full for that long.
 */
export async function dialUnix(path: string, display: string, limitMs: number): Promise<number> {
  const fd = libc().socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) throwErrno('create a unix socket');
  try {
    await connectUnix(fd, path, display, limitMs);
    return fd;
  } catch (caught) {
    fs.closeSync(fd);
    throw caught;
  }
}

/** A unix connect is done at once or refused; EAGAIN means that the listener's backlog is full. */
async function connectUnix(fd: number, path: string, display: string, limitMs: number): Promise<void> {
  if (Buffer.byteLength(path) > PATH_MAX_BYTES) {
    throw new HostError('Syscall', `connect ${display}: file name too long`, { errno: 'ENAMETOOLONG' });
  }
  const address = Buffer.alloc(ADDRESS_BYTES);
  address.writeUInt16LE(AF_UNIX, 0);
  address.write(path, 2);
  for (let waitedMs = 0; libc().connect(fd, address, address.length) !== 0; waitedMs += RETRY_MS) {
    const { name, text } = describeErrno(libc().errno());
    if (name !== 'EAGAIN') throw new HostError('Syscall', `connect ${display}: ${text}`, { errno: name });
    if (waitedMs >= limitMs) throw new HostError('ConnectTimeout', `connect ${display}: timeout`);
    await delay(RETRY_MS);
  }
}
