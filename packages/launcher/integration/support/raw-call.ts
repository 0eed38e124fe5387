import { connect } from 'node:http2';
import type { IncomingHttpHeaders } from 'node:http2';
import { connect as connectSocket } from 'node:net';

/** What came back: the bytes of an answer, or a status. */
export type RawAnswer = { readonly bytes: Buffer } | { readonly code: number; readonly message: string };

/**
 * One gRPC call with bytes as they are, below what a client of the cmd service checks and hides: a refusal may carry
 * more than its text.
 */
export async function callRaw(socketPath: string, path: string, request: Uint8Array): Promise<RawAnswer> {
  const session = connect('http://localhost', { createConnection: () => connectSocket(socketPath) });
  try {
    const headers = { ':method': 'POST', ':path': path, 'content-type': 'application/grpc', te: 'trailers' };
    const stream = session.request(headers);
    let last: IncomingHttpHeaders = {};
    stream.on('response', (response) => (last = response));
    stream.on('trailers', (trailers) => (last = trailers));
    const prefix = Buffer.alloc(5);
    prefix.writeUInt32BE(request.length, 1);
    stream.end(Buffer.concat([prefix, request]));
    const chunks: Buffer[] = [];
    for await (const chunk of stream as AsyncIterable<Buffer>) chunks.push(chunk);
    const code = Number(last['grpc-status'] ?? 14);
    if (code !== 0) return { code, message: decodeURIComponent([last['grpc-message'] ?? ''].join()) };
    return { bytes: Buffer.concat(chunks).subarray(5) };
  } finally {
    session.destroy();
  }
}
