import * as fs from 'node:fs';
import { HostError } from '../errors.ts';
import { libc, throwErrno } from '../libc.ts';
import { dialUnix } from '../paths/dial-unix.ts';
import { SafePath } from '../paths/safe-path.ts';

const SOL_SOCKET = 1;
const SO_PEERCRED = 17;
const DIAL_LIMIT_MS = 5_000;

/** Who listens at a unix socket: the process that called `listen`, and its user and group at that time. */
export interface PeerCredentials {
  readonly pid: number;
  readonly uid: number;
  readonly gid: number;
}

/**
 * Connects to a unix socket and asks the kernel who listens there; the connection is closed at once.
 *
 * @param socket a held path, or an absolute path in which no part may be a link.
 * @throws {HostError} `Syscall` when nobody listens, `ConnectTimeout` when the backlog stays full for 5 s,
 *   `PeerUnknown` when the peer lives in a pid namespace that this one does not see.
 * @source KubeVirt v1.9.0 pkg/virt-handler/isolation/detector.go:55
 */
export async function peerCredentials(socket: SafePath | string, limitMs = DIAL_LIMIT_MS): Promise<PeerCredentials> {
  if (typeof socket === 'string') {
    using opened = SafePath.openNoFollow(socket);
    return await peerCredentials(opened, limitMs);
  }
  const fd = await dialUnix(socket.procPath, socket.display, limitMs);
  try {
    const value = Buffer.alloc(12);
    const length = Buffer.from(Uint32Array.of(value.length).buffer);
    if (libc().getsockopt(fd, SOL_SOCKET, SO_PEERCRED, value, length) !== 0) throwErrno(`peer of ${socket.display}`);
    const pid = value.readInt32LE(0);
    if (pid === 0) {
      throw new HostError(
        'PeerUnknown',
        'the detected PID is 0. Is the isolation detector running in the host PID namespace?',
      );
    }
    return { pid, uid: value.readUInt32LE(4), gid: value.readUInt32LE(8) };
  } finally {
    fs.closeSync(fd);
  }
}
