import type { Duplex } from 'node:stream';

import { ServerCredentials, type ServerWritableStream, status } from '@grpc/grpc-js';

import { normaliseAuthority } from '../authority/connection.ts';
import {
  type DataChunk,
  type MapRequest,
  type MapResponse,
  NBDService,
  type ReadRequest,
} from '../gen/kubevirt/nbd/nbd.ts';
import { createGuardedServer } from '../guarded-server.ts';
import { errorText } from '../rpc-host.ts';

/** Calls of one connection at one time; each has a connection of its own to what is exported. */
const MAX_CALLS = 16;

/** What is served. An error that is thrown ends the call with its text and the code Unknown, as in Go. */
export interface NbdHandlers {
  map(request: MapRequest, signal: AbortSignal): AsyncIterable<MapResponse>;
  read(request: ReadRequest, signal: AbortSignal): AsyncIterable<DataChunk>;
}

/** A server on one connection. */
export interface NbdServer {
  /** Resolves when the connection has ended. */
  readonly closed: Promise<void>;
  /** Lets running calls end, and cuts the connection after the grace time. */
  stop(graceMs: number): Promise<void>;
}

type Produce<Q, A> = (request: Q, signal: AbortSignal) => AsyncIterable<A>;

/** A call in the form of grpc-js: one answer is written when the one before has gone out, so nothing piles up. */
function streaming<Q, A>(produce: Produce<Q, A>): (call: ServerWritableStream<Q, A>) => void {
  return (call) => {
    const abort = new AbortController();
    call.on('cancelled', () => abort.abort());
    void pump(call, produce, abort.signal);
  };
}

async function pump<Q, A>(
  call: ServerWritableStream<Q, A>,
  produce: Produce<Q, A>,
  signal: AbortSignal,
): Promise<void> {
  const aborted = new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
  try {
    for await (const answer of produce(call.request, signal)) {
      const written = new Promise<void>((resolve) => call.write(answer, () => resolve()));
      await Promise.race([written, aborted]);
      if (signal.aborted) return;
    }
    call.end();
  } catch (caught) {
    if (!signal.aborted) call.emit('error', { code: status.UNKNOWN, details: errorText(caught) });
  }
}

/**
 * Serves NBD's service on a connection that was made to whoever calls, not accepted from them.
 *
 * @param connection belongs to the server, which closes it.
 * @param onFault told when the peer breaks the protocol.
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/storage/backup_tunnel.go
 */
export function serveNbd(connection: Duplex, handlers: NbdHandlers, onFault: (error: Error) => void): NbdServer {
  const server = createGuardedServer({ 'grpc.max_concurrent_streams': MAX_CALLS, 'grpc.enable_channelz': 0 }, onFault);
  server.addService(NBDService, {
    map: streaming<MapRequest, MapResponse>((request, signal) => handlers.map(request, signal)),
    read: streaming<ReadRequest, DataChunk>((request, signal) => handlers.read(request, signal)),
  });
  const served = normaliseAuthority(connection);
  served.on('error', onFault);
  const closed = new Promise<void>((resolve) => served.once('close', () => resolve()));
  server.createConnectionInjector(ServerCredentials.createInsecure()).injectConnection(served);
  return {
    closed,
    async stop(graceMs) {
      server.tryShutdown(() => undefined);
      const timer = setTimeout(() => {
        server.forceShutdown();
        served.destroy();
      }, graceMs);
      await closed;
      clearTimeout(timer);
      server.forceShutdown();
    },
  };
}
