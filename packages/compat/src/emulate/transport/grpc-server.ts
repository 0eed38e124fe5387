import { createServer as createHttp2Server, type IncomingHttpHeaders, type ServerHttp2Stream } from 'node:http2';
import { mkdirSync, rmSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { dirname } from 'node:path';

import { fitSocketPath, normaliseAuthority } from '@virtwire/shared-proto';

import { CompatError } from '../../errors.ts';
import { encodeStatusText, GRPC, MessageReader, parseTimeout, renderFrame } from './grpc-frames.ts';

/** A call as it arrived. */
export interface IncomingCall {
  readonly path: string;
  readonly authority: string;
  readonly timeoutMs: number | undefined;
  readonly request: Uint8Array;
}

/** What to answer: a message, a status, or nothing at all until the connection ends. */
export type OutgoingAnswer =
  | { readonly kind: 'message'; readonly bytes: Uint8Array }
  | { readonly kind: 'status'; readonly code: number; readonly details: string }
  | { readonly kind: 'silence' };

/** A server that can be renamed, hung and killed like a process. */
export interface GrpcServer {
  readonly connectionCount: number;
  /** Connections that were accepted so far, those without a byte included. */
  readonly acceptedCount: number;
  /** Resolves when no call waits for its answer. */
  idle(): Promise<void>;
  /** Stops listening and cuts every connection; a renamed socket file stays behind and refuses connections. */
  kill(): Promise<void>;
}

/**
 * Serves a unix socket as a grpc-go server does: any authority, every call on its own, no reflection.
 *
 * @param options `takesAnyAuthority` false: like a server of Node that was never told about old peers.
 * @throws {CompatError} `ServeFailed`.
 */
export async function serveGrpc(
  socketPath: string,
  answer: (call: IncomingCall) => Promise<OutgoingAnswer>,
  options: { readonly takesAnyAuthority?: boolean } = {},
): Promise<GrpcServer> {
  const http2 = createHttp2Server();
  const sockets = new Set<Socket>();
  const calls = new Set<Promise<void>>();
  let acceptedCount = 0;
  http2.on('stream', (stream: ServerHttp2Stream, headers) => {
    const call = new Promise<void>((resolve) => stream.once('close', resolve));
    calls.add(call);
    void call.then(() => calls.delete(call));
    void serveStream(stream, headers, answer);
  });
  http2.on('sessionError', () => undefined);
  const server = createServer((socket) => {
    acceptedCount++;
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
    socket.on('error', () => undefined);
    // grpc-go takes an authority with slashes, Node's HTTP/2 does not.
    const stream = options.takesAnyAuthority === false ? socket : normaliseAuthority(socket);
    http2.emit(
      'connection',
      stream.on('error', () => undefined),
    );
  });
  await listen(server, socketPath);
  return {
    get connectionCount() {
      return sockets.size;
    },
    get acceptedCount() {
      return acceptedCount;
    },
    idle: async () => {
      while (calls.size > 0) await Promise.all(calls);
    },
    kill: async () => {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

async function listen(server: Server, socketPath: string): Promise<void> {
  try {
    mkdirSync(dirname(socketPath), { recursive: true, mode: 0o755 });
    rmSync(socketPath, { force: true });
    const fitted = fitSocketPath(socketPath);
    server.once('close', () => fitted[Symbol.dispose]());
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(fitted.path, resolve);
    });
  } catch (caught) {
    throw new CompatError('ServeFailed', `could not listen on ${socketPath}: ${String(caught)}`, { cause: caught });
  }
}

async function serveStream(
  stream: ServerHttp2Stream,
  headers: IncomingHttpHeaders,
  answer: (call: IncomingCall) => Promise<OutgoingAnswer>,
): Promise<void> {
  stream.on('error', () => undefined);
  const reader = new MessageReader();
  const isRead = await readAll(stream, reader);
  if (!isRead) return;
  const message = reader.read();
  if (message.kind === 'tooLarge') {
    const text = `grpc: received message larger than max (${message.length} vs. 4194304)`;
    return sendStatus(stream, GRPC.resourceExhausted, text);
  }
  if (message.kind === 'incomplete') return sendStatus(stream, GRPC.internal, 'unexpected EOF');
  const timeout = headers['grpc-timeout'];
  const result = await answer({
    path: headers[':path'] ?? '',
    authority: headers[':authority'] ?? '',
    timeoutMs: parseTimeout(typeof timeout === 'string' ? timeout : undefined),
    request: message.bytes,
  });
  if (stream.destroyed || stream.closed || result.kind === 'silence') return;
  if (result.kind === 'status') return sendStatus(stream, result.code, result.details);
  stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true });
  stream.once('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0', 'grpc-message': '' }));
  stream.end(renderFrame(result.bytes));
}

function readAll(stream: ServerHttp2Stream, reader: MessageReader): Promise<boolean> {
  return new Promise((resolve) => {
    stream.on('data', (chunk: Buffer) => void reader.push(chunk));
    stream.once('end', () => resolve(true));
    stream.once('close', () => resolve(false));
  });
}

function sendStatus(stream: ServerHttp2Stream, code: number, details: string): void {
  const headers = {
    ':status': 200,
    'content-type': 'application/grpc',
    'grpc-status': String(code),
    'grpc-message': encodeStatusText(details),
  };
  stream.respond(headers, { endStream: true });
}
