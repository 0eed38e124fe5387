import { mkdtempSync, rmSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { createLogger, type Logger } from '@virtwire/telemetry';

/** A directory of a test's own. */
export function tempDirectory(): { readonly path: string } & Disposable {
  const path = mkdtempSync(join(tmpdir(), 'virtwire-pipe-'));
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) };
}

/** A logger that keeps its lines. */
export function memoryLogger(): { readonly log: Logger; readonly lines: string[] } {
  const lines: string[] = [];
  const destination = { write: (line: string) => void lines.push((JSON.parse(line) as { msg: string }).msg) };
  return { log: createLogger('test', { destination, verbosity: 3 }), lines };
}

/** Listens on a unix socket; disposal cuts what is open. */
export async function listen(
  path: string,
  onConnection: (socket: Socket) => void,
  options: { readonly allowHalfOpen?: boolean } = {},
): Promise<AsyncDisposable> {
  const sockets = new Set<Socket>();
  const server = createServer(options, (socket) => {
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

/** Connects; errors are left to whoever looks for them. */
export async function dial(path: string): Promise<Socket> {
  const socket = connect(path);
  await new Promise<void>((resolve, reject) => {
    socket.once('error', reject);
    socket.once('connect', resolve);
  });
  socket.on('error', () => undefined);
  return socket;
}

/** Reads until the connection is closed. */
export function readAll(socket: Socket): Promise<Buffer> {
  const chunks: Buffer[] = [];
  socket.on('data', (chunk: Buffer) => chunks.push(chunk));
  return new Promise((resolve) => socket.once('close', () => resolve(Buffer.concat(chunks))));
}

/** Waits for a condition, with a deadline that only a hang reaches. */
export async function until(condition: () => boolean, what: string): Promise<void> {
  const deadlineAtMs = Date.now() + 20_000;
  while (!condition()) {
    if (Date.now() > deadlineAtMs) throw new Error(`gave up waiting until ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
