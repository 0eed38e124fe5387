import type * as net from 'node:net';
import { once } from 'node:events';
import { errnoOf, HostError } from '../errors.ts';
import type { SafePath } from './safe-path.ts';

/**
 * Makes `server` listen on a unix socket called `name` in a directory that others may write to. An older object of that
 * name is removed (a directory only if empty); afterwards the new socket is opened without following links, to prove
 * that it is where it should be. The path that the kernel sees goes through the directory's descriptor, so its length
 * does not matter. `directory` must stay open until the server is closed, since Node removes the socket by that path.
 *
 * @returns the new socket, held; the caller sets owner and mode on it and disposes of it.
 * @source KubeVirt v1.9.0 pkg/safepath/safepath.go ListenUnixNoFollow
 */
export async function listenUnix(server: net.Server, directory: SafePath, name: string): Promise<SafePath> {
  removeOld(directory, name);
  server.listen(directory.childPath(name));
  await once(server, 'listening');
  const socket = directory.join(name);
  if (socket.stat().isSocket()) return socket;
  socket[Symbol.dispose]();
  server.close();
  throw new HostError('UnsafePath', `${directory.display}/${name} is no socket after listen`);
}

function removeOld(directory: SafePath, name: string): void {
  try {
    directory.unlink(name);
  } catch (caught) {
    const errno = errnoOf(caught);
    if (errno === 'EISDIR' || errno === 'EPERM') directory.rmdir(name);
    else if (errno !== 'ENOENT') throw caught;
  }
}
