import { once } from 'node:events';
import { createServer } from 'node:http2';
import type { IncomingHttpHeaders, ServerHttp2Stream } from 'node:http2';
import { mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { readFields, writeFields } from './protobuf-fields.ts';
import type { ProtobufFields } from './protobuf-fields.ts';

/** What a sidecar answers to a call, by the path of the method. Throws to fail; may never answer. */
export type SidecarMethods = Readonly<Record<string, (request: ProtobufFields) => Buffer | Promise<Buffer>>>;

const PREFIX_BYTES = 5;
const OK = 0;
const UNKNOWN = 2;
const UNIMPLEMENTED = 12;

/**
 * Serves a hook sidecar's socket, in HTTP/2 and protobuf written by hand: nothing here knows the launcher's own codecs.
 */
export async function serveSidecar(socketPath: string, methods: SidecarMethods): Promise<AsyncDisposable> {
  mkdirSync(dirname(socketPath), { recursive: true });
  const streams = new Set<ServerHttp2Stream>();
  const server = createServer();
  server.on('stream', (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => {
    streams.add(stream);
    stream.on('close', () => streams.delete(stream));
    // A caller that gives up is no fault of the sidecar.
    stream.on('error', () => undefined);
    void answer(stream, headers[':path'] ?? '', methods);
  });
  server.listen(socketPath);
  await once(server, 'listening');
  return {
    async [Symbol.asyncDispose]() {
      for (const stream of streams) stream.session?.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}

async function answer(stream: ServerHttp2Stream, path: string, methods: SidecarMethods): Promise<void> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk as Buffer);
  const method = methods[path];
  const end = (code: number, text = ''): void => {
    stream.on('wantTrailers', () => {
      stream.sendTrailers({ 'grpc-status': code, 'grpc-message': encodeMessage(text) });
    });
  };
  const head = { ':status': 200, 'content-type': 'application/grpc+proto' };
  if (method === undefined) end(UNIMPLEMENTED, `unknown method ${path}`);
  try {
    const message = await method?.(readFields(Buffer.concat(chunks).subarray(PREFIX_BYTES)));
    if (stream.destroyed) return;
    if (message !== undefined) end(OK);
    stream.respond(head, { waitForTrailers: true });
    stream.end(message === undefined ? undefined : frame(message));
  } catch (caught) {
    if (stream.destroyed) return;
    end(UNKNOWN, caught instanceof Error ? caught.message : String(caught));
    stream.respond(head, { waitForTrailers: true });
    stream.end();
  }
}

/** As gRPC asks: all but printable ASCII in percent form, and the percent sign. */
function encodeMessage(text: string): string {
  return text.replace(/[^ -$&-~]/gu, (char) => encodeURIComponent(char));
}

function frame(message: Buffer): Buffer {
  const prefix = Buffer.alloc(PREFIX_BYTES);
  prefix.writeUInt32BE(message.length, 1);
  return Buffer.concat([prefix, message]);
}

/** The method by which a sidecar says what it offers. */
export function infoMethod(
  versions: readonly string[],
  hookPoints: readonly (readonly [name: string, priority: number])[],
): SidecarMethods {
  const points = hookPoints.map(([name, priority]) => [3, writeFields([1, name], [2, priority])] as const);
  const result = writeFields([1, 'test'], ...points, ...versions.map((version) => [4, version] as const));
  return { '/kubevirt.hooks.info.Info/Info': () => result };
}

/** The text of a field. */
export function textOfField(fields: ProtobufFields, number: number): string {
  const value = fields.get(number)?.[0];
  return Buffer.isBuffer(value) ? value.toString('utf8') : '';
}
