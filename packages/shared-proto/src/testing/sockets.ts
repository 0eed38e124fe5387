import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A path for a socket in a directory of its own, which goes away with it. */
export interface TempSocket extends Disposable {
  readonly path: string;
}

/** Makes a directory for one socket. */
export function tempSocket(): TempSocket {
  const directory = mkdtempSync(join(tmpdir(), 'virtwire-proto-'));
  return {
    path: join(directory, 'launcher-sock'),
    [Symbol.dispose]: () => rmSync(directory, { recursive: true, force: true }),
  };
}

/** Listens with a peer that is not gRPC at all; disposal cuts its connections. */
export async function listenRaw(path: string, onConnection: (socket: Socket) => void): Promise<AsyncDisposable> {
  const sockets = new Set<Socket>();
  const server: Server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.on('close', () => sockets.delete(socket));
    onConnection(socket);
  });
  await new Promise<void>((resolve) => server.listen(path, resolve));
  return {
    [Symbol.asyncDispose]: () => {
      for (const socket of sockets) socket.destroy();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}

/** Waits for a condition, with a deadline that only a hang reaches. */
export async function until(condition: () => boolean, what: string): Promise<void> {
  const deadlineAtMs = Date.now() + 20_000;
  while (!condition()) {
    if (Date.now() > deadlineAtMs) throw new Error(`gave up waiting until ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
