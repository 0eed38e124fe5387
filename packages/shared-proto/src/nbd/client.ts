import { connect, type ClientHttp2Session, type ClientHttp2Stream, type IncomingHttpHeaders } from 'node:http2';
import type { Duplex } from 'node:stream';

import { ProtoError } from '../errors.ts';
import { type DataChunk, type MapResponse, MapRequest, NBDService, ReadRequest } from '../gen/kubevirt/nbd/nbd.ts';

/** One byte of flags and four of length come before each message. */
const PREFIX_BYTES = 5;
/** The largest answer that is taken; data come in pieces of 256 KiB. */
const MAX_ANSWER_BYTES = 4 * 1024 * 1024;

/** What an export server asks a launcher. Calls fail with `ProtoError` `Failed`, which carries the launcher's text. */
export interface NbdClient extends Disposable {
  map(request: Partial<MapRequest>): AsyncIterable<MapResponse>;
  read(request: Partial<ReadRequest>): AsyncIterable<DataChunk>;
}

/**
 * Asks over a connection that the launcher made: the server's side of gRPC is at its end.
 *
 * @param connection what follows on CONNECT; it belongs to the client, which closes it.
 */
export function connectNbd(connection: Duplex): NbdClient {
  const session = connect('http://localhost', { createConnection: () => connection });
  // Calls hear of it.
  session.on('error', () => undefined);
  const { map, read } = NBDService;
  return {
    map: (request) => call(session, map, map.requestSerialize(MapRequest.fromPartial(request))),
    read: (request) => call(session, read, read.requestSerialize(ReadRequest.fromPartial(request))),
    [Symbol.dispose]: () => session.destroy(),
  };
}

interface Method<A> {
  readonly path: string;
  readonly responseDeserialize: (bytes: Buffer) => A;
}

async function* call<A>(session: ClientHttp2Session, method: Method<A>, request: Buffer): AsyncGenerator<A> {
  const stream = session.request({
    ...{ ':method': 'POST', ':path': method.path, 'content-type': 'application/grpc', te: 'trailers' },
  });
  try {
    const ended = endOf(stream);
    const prefix = Buffer.alloc(PREFIX_BYTES);
    prefix.writeUInt32BE(request.length, 1);
    stream.end(Buffer.concat([prefix, request]));
    for await (const message of messagesOf(stream)) yield method.responseDeserialize(message);
    checkStatus(await ended);
  } catch (caught) {
    if (caught instanceof ProtoError) throw caught;
    const text = caught instanceof Error ? caught.message : String(caught);
    throw new ProtoError('Disconnected', text, { cause: caught });
  } finally {
    stream.destroy();
  }
}

/** The headers that hold the status: trailers, or the only ones of an answer without messages. */
function endOf(stream: ClientHttp2Stream): Promise<IncomingHttpHeaders> {
  return new Promise((resolve) => {
    let last: IncomingHttpHeaders = {};
    stream.on('response', (headers) => (last = headers));
    stream.on('trailers', (headers) => (last = headers));
    stream.on('close', () => resolve(last));
  });
}

async function* messagesOf(stream: ClientHttp2Stream): AsyncGenerator<Buffer> {
  let rest: Buffer = Buffer.alloc(0);
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    while (rest.length >= PREFIX_BYTES) {
      const end = PREFIX_BYTES + rest.readUInt32BE(1);
      if (end > MAX_ANSWER_BYTES) throw new ProtoError('Failed', `answer of ${end} bytes`);
      if (rest.length < end) break;
      yield rest.subarray(PREFIX_BYTES, end);
      rest = rest.subarray(end);
    }
  }
}

function checkStatus(headers: IncomingHttpHeaders): void {
  const status = headers['grpc-status'];
  if (status === '0') return;
  if (status === undefined) throw new ProtoError('Disconnected', 'the connection ended before the answer did');
  const detail = decodeURIComponent(String(headers['grpc-message'] ?? ''));
  throw new ProtoError('Failed', detail === '' ? `status ${String(status)}` : detail, { detail });
}
