import type { ServerHttp2Stream } from 'node:http2';

import { Server, type ServerOptions } from '@grpc/grpc-js';

type StreamHandler = (interceptors: unknown, stream: ServerHttp2Stream, headers: unknown) => void;

/**
 * Creates a grpc-js server that a peer cannot crash.
 *
 * grpc-js 1.14.7 answers requests with a bad content type or an unknown method at once, also on a stream that the peer
 * has reset meanwhile. That throws out of an event handler, where it ends the process. Such a stream is dropped here.
 *
 * @param onFault is told about the exception.
 */
export function createGuardedServer(options: ServerOptions, onFault: (error: Error) => void): Server {
  const server = new Server(options);
  const internals = server as unknown as { _streamHandler?: StreamHandler };
  const handle = internals._streamHandler;
  if (typeof handle !== 'function') throw new Error('this release of grpc-js cannot be guarded: no stream handler');
  internals._streamHandler = function guarded(this: Server, interceptors, stream, headers) {
    try {
      handle.call(this, interceptors, stream, headers);
    } catch (caught) {
      stream.destroy();
      onFault(caught instanceof Error ? caught : new Error(String(caught)));
    }
  };
  return server;
}
