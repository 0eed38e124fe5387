import { mkdirSync, rmSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { dirname } from 'node:path';

import { fitSocketPath } from '@virtwire/shared-proto';

/** A pipe from the pod's share directory to the node's notify socket. */
export interface NotifyPipe {
  close(): Promise<void>;
}

/**
 * Opens the pipe that a launcher finds in its pod: every connection is copied to the node's socket, both ways.
 *
 * @source releases.json eras.notifyPipe; wire.md 7 Pipe
 */
export async function openNotifyPipe(pipePath: string, notifySocket: string): Promise<NotifyPipe> {
  mkdirSync(dirname(pipePath), { recursive: true });
  rmSync(pipePath, { force: true });
  const sockets = new Set<Socket>();
  const keep = (socket: Socket): void => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.once('close', () => sockets.delete(socket));
  };
  const server = createServer({ allowHalfOpen: false }, (inner) => {
    const target = fitSocketPath(notifySocket);
    const outer = connect(target.path);
    keep(inner);
    keep(outer);
    outer.once('close', () => {
      target[Symbol.dispose]();
      inner.destroy();
    });
    inner.once('close', () => outer.destroy());
    inner.pipe(outer);
    outer.pipe(inner);
  });
  const fitted = fitSocketPath(pipePath);
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(fitted.path, resolve);
  });
  return {
    close: async () => {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      for (const socket of sockets) socket.destroy();
      await closed;
      fitted[Symbol.dispose]();
    },
  };
}
