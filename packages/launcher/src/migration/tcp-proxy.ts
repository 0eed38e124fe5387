import { chown, rm } from 'node:fs/promises';
import { connect, createServer } from 'node:net';
import type { Server, Socket } from 'node:net';
import type { Logger } from '@virtwire/telemetry';
import { LauncherError } from '../errors.ts';

/** Connections that a proxy serves at once: QEMU makes one per parallel thread, and one to control them. */
const CONNECTION_LIMIT = 64;
const LOOPBACK = '127.0.0.1';

/** Where a proxy listens and where it leads. */
export interface ProxyRoute {
  readonly socketPath: string;
  /** TCP port on the loopback address. */
  readonly port: number;
}

function join(one: Socket, other: Socket, log: Logger): void {
  const end = (caught?: Error): void => {
    if (caught !== undefined) log.debug({ reason: caught }, 'migration proxy connection failed');
    one.destroy();
    other.destroy();
  };
  one.on('error', end).on('close', () => end());
  other.on('error', end).on('close', () => end());
  one.pipe(other);
  other.pipe(one);
}

/**
 * Serves a unix socket whose connections lead to a TCP port on this host's loopback address, where QEMU listens for
 * sources that know no unix sockets.
 *
 * @throws {LauncherError} `MigrationFailed` when it cannot listen
 */
export async function startTcpProxy(
  { socketPath, port }: ProxyRoute,
  owner: { readonly uid: number; readonly gid: number },
  log: Logger,
): Promise<Server> {
  const server = createServer({ pauseOnConnect: false }, (accepted) => join(accepted, connect(port, LOOPBACK), log));
  server.maxConnections = CONNECTION_LIMIT;
  try {
    await rm(socketPath, { force: true });
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(socketPath, resolve);
    });
    await chown(socketPath, owner.uid, owner.gid);
  } catch (caught) {
    server.close();
    throw LauncherError.from(caught, 'MigrationFailed', `failed to serve ${socketPath}: `);
  }
  server.on('error', (caught) => log.error({ reason: caught }, `migration proxy ${socketPath} failed`));
  server.unref();
  return server;
}
