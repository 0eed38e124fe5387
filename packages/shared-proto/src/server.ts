import { randomUUID } from 'node:crypto';
import { lstatSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { dirname, join } from 'node:path';

import { ProtoError } from './errors.ts';
import { MAX_CONCURRENT_CALLS } from './limits.ts';
import type { HostOptions, RpcHost } from './rpc-host.ts';
import { fitSocketPath } from './socket-path.ts';

/** Options of a server on a unix socket. */
export interface ServeOptions {
  /** Connections at one time; the next one is closed at once. Default 256. */
  readonly maxConnections?: number | undefined;
  /** Told about faults that no caller hears of: a connection that broke the protocol, a failed accept. */
  readonly onFault?: ((error: Error) => void) | undefined;
  /** Protocol generations that the info service lists; only tests of skew have a reason to change it. Default [1]. */
  readonly versions?: readonly number[] | undefined;
}

/** A gRPC server on a unix socket. */
export interface RpcServer extends AsyncDisposable {
  readonly socketPath: string;
  /** Connections that are open now, those that never sent a byte included. */
  readonly connectionCount: number;
  /**
   * Stops listening and removes the socket unless it was renamed or replaced, lets running calls end, and cuts what is left after
   * the grace time, which is a second by default.
   */
  stop(graceMs?: number): Promise<void>;
}

const DEFAULT_MAX_CONNECTIONS = 256;
const DEFAULT_GRACE_MS = 1_000;

/** Fills in the defaults of a host's limits. */
export function hostOptions(options: ServeOptions): HostOptions {
  return {
    maxConnections: options.maxConnections ?? DEFAULT_MAX_CONNECTIONS,
    maxCalls: MAX_CONCURRENT_CALLS,
    onFault: options.onFault ?? (() => undefined),
  };
}

/**
 * Listens on a unix socket for a host. A file in its place is replaced, a missing directory made (mode 0755).
 *
 * The socket is made under another name and then renamed: it is never missing for a moment, and Node, which removes
 * the name that it listened on, does not remove the socket of a server that has taken this one's place.
 *
 * @throws {ProtoError} `ListenFailed`.
 */
export async function listenUnix(socketPath: string, host: RpcHost, options: HostOptions): Promise<RpcServer> {
  using stack = new DisposableStack();
  const server = createServer({ allowHalfOpen: true }, (socket) => host.accept(socket));
  let inode: bigint | undefined;
  try {
    mkdirSync(dirname(socketPath), { recursive: true, mode: 0o755 });
    const temporaryPath = join(dirname(socketPath), `.${randomUUID()}`);
    await listen(server, stack.use(fitSocketPath(temporaryPath)).path);
    inode = inodeOf(temporaryPath);
    renameSync(temporaryPath, socketPath);
  } catch (caught) {
    server.close();
    const text = caught instanceof Error ? caught.message : String(caught);
    throw new ProtoError('ListenFailed', `could not listen on ${socketPath}: ${text}`, { cause: caught });
  }
  server.on('error', options.onFault);
  const resources = stack.move();
  const stopOnce = once(async (graceMs: number) => {
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    if (inodeOf(socketPath) === inode) rmSync(socketPath, { force: true });
    await host.stop(graceMs);
    await closed;
    resources.dispose();
  });
  return {
    socketPath,
    get connectionCount() {
      return host.connectionCount;
    },
    stop: (graceMs = DEFAULT_GRACE_MS) => stopOnce(graceMs),
    [Symbol.asyncDispose]: () => stopOnce(DEFAULT_GRACE_MS),
  };
}

function inodeOf(path: string): bigint | undefined {
  return lstatSync(path, { bigint: true, throwIfNoEntry: false })?.ino;
}

function listen(server: Server, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(path, () => {
      server.off('error', reject);
      resolve();
    });
  });
}

function once(run: (graceMs: number) => Promise<void>): (graceMs: number) => Promise<void> {
  let result: Promise<void> | undefined;
  return (graceMs) => (result ??= run(graceMs));
}
