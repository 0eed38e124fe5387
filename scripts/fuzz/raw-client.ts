import { type ClientHttp2Session, connect, constants, type IncomingHttpHeaders } from 'node:http2';
import { connect as connectSocket } from 'node:net';

/** What a server has answered. */
export interface RawAnswer {
  /** The gRPC status; undefined when the call has ended without one. */
  readonly status: number | undefined;
  /** Text of the status. */
  readonly text: string;
  /** The message, without its frame; empty when there is none. */
  readonly message: Buffer;
}

/** Calls with any bytes, as no typed client would send them. */
export interface RawClient extends Disposable {
  /** Resolves when the call has ended, however; rejects if it has not within the limit. */
  call(path: string, message: Buffer): Promise<RawAnswer>;
}

/** Long enough for the time that an RPC may give a guest. */
const CALL_LIMIT_MS = 45_000;
const FRAME_HEADER_BYTES = 5;

/** Connects to a gRPC server on a unix socket. */
export function connectRaw(socketPath: string): RawClient {
  const session: ClientHttp2Session = connect('http://localhost', {
    createConnection: () => connectSocket(socketPath),
  });
  session.on('error', () => undefined);
  return {
    call: (path, message) => callRaw(session, path, message),
    [Symbol.dispose]: () => session.destroy(),
  };
}

function callRaw(session: ClientHttp2Session, path: string, message: Buffer): Promise<RawAnswer> {
  const headers = { ':method': 'POST', ':path': path, 'content-type': 'application/grpc', te: 'trailers' };
  const stream = session.request(headers);
  const chunks: Buffer[] = [];
  let last: IncomingHttpHeaders = {};
  stream.on('response', (response) => (last = response));
  stream.on('trailers', (trailers) => (last = trailers));
  stream.on('data', (chunk: Buffer) => chunks.push(chunk));
  stream.on('error', () => undefined);
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      reject(new Error(`a call of ${path} has not ended within ${CALL_LIMIT_MS} ms`));
      stream.close(constants.NGHTTP2_CANCEL);
    }, CALL_LIMIT_MS);
    stream.once('close', () => {
      clearTimeout(timer);
      const status = last['grpc-status'];
      resolve({
        status: status === undefined ? undefined : Number(status),
        text: decodeURIComponent([last['grpc-message'] ?? ''].join()),
        message: Buffer.concat(chunks).subarray(FRAME_HEADER_BYTES),
      });
    });
    stream.end(frame(message));
  });
}

function frame(message: Buffer): Buffer {
  const header = Buffer.alloc(FRAME_HEADER_BYTES);
  header.writeUInt32BE(message.length, 1);
  return Buffer.concat([header, message]);
}
