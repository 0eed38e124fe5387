import { closeSync, constants, openSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';

/** The longest path that fits into the kernel's socket address. @source Linux unix(7) */
const MAX_SOCKET_PATH_BYTES = 107;
/** Linux's O_PATH: a handle on the directory, without the right to read it. Node does not name it. */
const O_PATH = 0o10000000;

/** A path that names a socket and fits into a socket address. */
export interface SocketPath extends Disposable {
  readonly path: string;
}

/**
 * Makes a socket's path usable whatever its length: a long one goes through a handle on its directory, which stays
 * open until disposal. Short ones, and those whose directory cannot be opened, stay as they are.
 */
export function fitSocketPath(path: string): SocketPath {
  if (Buffer.byteLength(path) <= MAX_SOCKET_PATH_BYTES) return { path, [Symbol.dispose]: () => undefined };
  const fd = openSync(dirname(path), O_PATH | constants.O_DIRECTORY);
  let isOpen = true;
  return {
    path: join(`/proc/self/fd/${fd}`, basename(path)),
    [Symbol.dispose]: () => {
      if (isOpen) closeSync(fd);
      isOpen = false;
    },
  };
}
