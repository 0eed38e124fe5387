import { type ClientHttp2Session, connect, constants } from 'node:http2';
import { connect as connectSocket } from 'node:net';

/** Calls with any bytes, as no typed client would send them. */
export interface RawClient extends Disposable {
  /** Resolves when the call has ended, however; rejects if it has not within the limit. */
  call(path: string, message: Buffer): Promise<void>;
}

const CALL_LIMIT_MS = 10_000;
const FRAME_HEADER_BYTES = 5;

/** Connects to a gRPC server on a unix socket. */
export function connectRaw(socketPath: string): RawClient {
  const session: ClientHttp2Session = connect('http://localhost', {
    createConnection: () => connectSocket(socketPath),
  });
  session.on('error', () => undefined);
  return {
    call: (path, message) =>
      new Promise((resolve, reject) => {
        const stream = session.request({
          ':method': 'POST',
          ':path': path,
          'content-type': 'application/grpc',
          te: 'trailers',
        });
        const timer = setTimeout(() => {
          reject(new Error(`a call of ${path} has not ended within ${CALL_LIMIT_MS} ms`));
          stream.close(constants.NGHTTP2_CANCEL);
        }, CALL_LIMIT_MS);
        stream.on('error', () => undefined);
        stream.once('close', () => {
          clearTimeout(timer);
          resolve();
        });
        stream.resume();
        stream.end(frame(message));
      }),
    [Symbol.dispose]: () => session.destroy(),
  };
}

function frame(message: Buffer): Buffer {
  const header = Buffer.alloc(FRAME_HEADER_BYTES);
  header.writeUInt32BE(message.length, 1);
  return Buffer.concat([header, message]);
}
