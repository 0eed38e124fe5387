import { connect, type Socket } from 'node:net';

import fc from 'fast-check';
import { afterEach, beforeEach, expect, test } from 'vitest';

import { connectCmd } from './cmd/client.ts';
import { serveCmd } from './cmd/server.ts';
import { cutAt, frame } from './testing/frames.ts';
import { listenRaw, tempSocket, type TempSocket } from './testing/sockets.ts';

/** Short, since most of what follows never becomes a connection. */
const LIMITS = { dialTimeoutMs: 40, infoTimeoutMs: 40 };
const RUNS = { numRuns: 120 };

let socket: TempSocket;
beforeEach(() => {
  socket = tempSocket();
});
afterEach(() => socket[Symbol.dispose]());

/** What a server of ours sends for a version check and a ping. */
async function recordServer(): Promise<Buffer> {
  const path = `${socket.path}-inner`;
  await using _server = await serveCmd(path, { ping: async () => undefined });
  const chunks: Buffer[] = [];
  await using _relay = await listenRaw(socket.path, (outer) => {
    const inner = connect(path);
    inner.on('error', () => undefined);
    inner.on('data', (chunk: Buffer) => chunks.push(chunk));
    outer.on('close', () => inner.destroy());
    outer.pipe(inner).pipe(outer);
  });
  using client = await connectCmd(socket.path);
  await client.ping();
  return Buffer.concat(chunks);
}

/** Dials a peer that answers with fixed bytes; whatever comes of it, it has to end, and in a result or a ProtoError. */
async function dialLiar(pieces: readonly Buffer[]): Promise<void> {
  const talk = (connection: Socket): void => {
    connection.resume();
    for (const piece of pieces) connection.write(piece);
  };
  const path = `${socket.path}-liar`;
  await using _liar = await listenRaw(path, talk);
  const outcome = await connectCmd(path, LIMITS).then(
    async (client) => {
      const result = await client.ping({}, { timeoutMs: 40 });
      client.close();
      return result.ok ? 'ok' : result.error.name;
    },
    (error: unknown) => (error instanceof Error ? error.name : 'no error'),
  );
  expect(['ok', 'ProtoError']).toContain(outcome);
}

test('a client survives a server whose bytes are damaged', async () => {
  const recorded = await recordServer();
  const flips = fc.array(fc.record({ at: fc.nat(), to: fc.integer({ min: 0, max: 255 }) }), { maxLength: 8 });
  await fc.assert(
    fc.asyncProperty(flips, fc.array(fc.nat(), { maxLength: 4 }), async (changes, cuts) => {
      const bytes = Buffer.from(recorded);
      for (const { at, to } of changes) bytes[at % bytes.length] = to;
      await dialLiar(cutAt(bytes, cuts));
    }),
    RUNS,
  );
});

test('a client survives a server that sends random frames or bytes', async () => {
  const anyFrame = fc
    .record({
      type: fc.integer({ min: 0, max: 12 }),
      flags: fc.integer({ min: 0, max: 255 }),
      streamId: fc.constantFrom(0, 1, 2, 3, 2 ** 31 - 1),
      payload: fc.uint8Array({ maxLength: 40 }),
    })
    .map((f) => frame(f.type, f.flags, f.streamId, f.payload));
  const settings = frame(4, 0, 0, Buffer.alloc(0));
  const http2 = fc.array(anyFrame, { maxLength: 12 }).map((frames) => Buffer.concat([settings, ...frames]));
  const garbage = fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes));
  await fc.assert(
    fc.asyncProperty(fc.oneof(http2, garbage), (bytes) => dialLiar([bytes])),
    RUNS,
  );
});
