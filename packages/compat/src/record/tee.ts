import { mkdirSync, rmSync, statSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { dirname } from 'node:path';
import { fitSocketPath } from '@virtwire/shared-proto';
import type { Sender } from '../connection/frames.ts';
import { CompatError } from '../errors.ts';

/** Who is told of what passes. */
export interface TeeListener {
  readonly onConnect: (connection: number) => void;
  /** Bytes that were passed on, in their order. */
  readonly onBytes: (connection: number, sender: Sender, bytes: Buffer) => void;
  readonly onDisconnect: (connection: number) => void;
}

/** Passes every byte between clients and a server on unix sockets, unchanged and in both directions. */
export interface Tee extends AsyncDisposable {
  readonly connectionCount: number;
}

/**
 * Listens in the place of a server. The server need not be there yet: a connection that cannot be passed on is closed,
 * as one to a server that is gone.
 *
 * @throws {CompatError} `ServeFailed`; `BadOption` when something other than a socket is at the place.
 */
export async function startTee(listen: string, to: string, listener: TeeListener): Promise<Tee> {
  const pairs = new Set<readonly [Socket, Socket]>();
  let connectionCount = 0;
  const server = createServer({ allowHalfOpen: true }, (client) => {
    connectionCount += 1;
    const pair = join(client, to, connectionCount, listener);
    pairs.add(pair);
    client.once('close', () => pairs.delete(pair));
  });
  prepare(listen);
  const fitted = fitSocketPath(listen);
  try {
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(fitted.path, resolve);
    });
  } catch (caught) {
    fitted[Symbol.dispose]();
    throw new CompatError('ServeFailed', `could not listen on ${listen}: ${String(caught)}`, { cause: caught });
  }
  return {
    get connectionCount() {
      return connectionCount;
    },
    [Symbol.asyncDispose]: async () => {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      for (const sockets of pairs) for (const socket of sockets) socket.destroy();
      await closed;
      fitted[Symbol.dispose]();
      rmSync(listen, { force: true });
    },
  };
}

/** Makes the folder and takes an old socket away, but nothing else. */
function prepare(listen: string): void {
  const old = statSync(listen, { throwIfNoEntry: false });
  if (old !== undefined && !old.isSocket()) {
    throw new CompatError('BadOption', `${listen} is there and is no socket: name a place for a new one`);
  }
  try {
    mkdirSync(dirname(listen), { recursive: true });
    rmSync(listen, { force: true });
  } catch (caught) {
    throw new CompatError('ServeFailed', `could not listen on ${listen}: ${String(caught)}`, { cause: caught });
  }
}

function join(client: Socket, to: string, connection: number, listener: TeeListener): readonly [Socket, Socket] {
  listener.onConnect(connection);
  const fitted = fitSocketPath(to);
  const server = connect({ path: fitted.path, allowHalfOpen: true });
  const sides: readonly (readonly [from: Socket, into: Socket, sender: Sender])[] = [
    [client, server, 'client'],
    [server, client, 'server'],
  ];
  for (const [from, into, sender] of sides) {
    from.on('data', (bytes: Buffer) => listener.onBytes(connection, sender, bytes));
    from.pipe(into);
    from.on('error', () => into.destroy());
    from.once('close', () => into.destroySoon());
  }
  let open = 2;
  const closed = (): void => {
    open -= 1;
    if (open === 0) listener.onDisconnect(connection);
  };
  client.once('close', closed);
  server.once('close', () => {
    fitted[Symbol.dispose]();
    closed();
  });
  return [client, server];
}
