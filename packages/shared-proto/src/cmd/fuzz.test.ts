import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';

import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';

import { CLIENT_PREFACE, HEADERS } from '../authority/frames.ts';
import { encodeLiterals } from '../authority/hpack.ts';
import { cutAt, frame, splitFrames } from '../testing/frames.ts';
import { tempSocket, type TempSocket, until } from '../testing/sockets.ts';
import { connectCmd } from './client.ts';
import { serveCmd } from './server.ts';

let socket: TempSocket;
beforeEach(() => {
  socket = tempSocket();
});
afterEach(() => socket[Symbol.dispose]());

const recorded = (release: string): Buffer =>
  readFileSync(join(import.meta.dirname, `../../testdata/${release}/cmd-client.bin`)).subarray(0, 4_000);

/** Sends bytes on a connection of their own, in pieces, and hangs up. */
function attack(pieces: readonly Buffer[]): Promise<void> {
  const connection = connect(socket.path);
  connection.on('error', () => undefined);
  connection.resume();
  for (const piece of pieces) connection.write(piece);
  connection.end();
  return new Promise((resolve) => connection.once('close', () => resolve()));
}

async function withServer(run: () => Promise<void>): Promise<void> {
  await using server = await serveCmd(socket.path, { ping: async () => undefined });
  using witness = await connectCmd(socket.path);
  await run();
  // The connection that was there before goes on, and nothing of the others is left.
  expect((await witness.ping()).ok).toBe(true);
  await until(() => server.connectionCount === 1, 'the others are forgotten');
}

const RST_STREAM = 3;
const places = fc.array(fc.nat(), { maxLength: 6 });

describe('a server on a real socket survives', () => {
  test('recorded connections of three releases with bytes changed', async () => {
    const flips = fc.array(fc.record({ at: fc.nat(), to: fc.integer({ min: 0, max: 255 }) }), { maxLength: 12 });
    const release = fc.constantFrom('v1.0.1', 'v1.3.1', 'v1.6.6');
    await withServer(() =>
      fc.assert(
        fc.asyncProperty(release, flips, places, async (name, changes, cuts) => {
          const bytes = Buffer.from(recorded(name));
          for (const { at, to } of changes) bytes[at % bytes.length] = to;
          await attack(cutAt(bytes, cuts));
        }),
        { numRuns: 150 },
      ),
    );
  });

  test('connections that are cut off anywhere', async () => {
    await withServer(() =>
      fc.assert(
        fc.asyncProperty(fc.constantFrom('v1.0.1', 'v1.3.1'), fc.nat(), async (name, end) => {
          const bytes = recorded(name);
          await attack([bytes.subarray(0, end % bytes.length)]);
        }),
        { numRuns: 100 },
      ),
    );
  });

  test('random frames and random bytes', async () => {
    const anyFrame = fc
      .record({
        type: fc.integer({ min: 0, max: 12 }),
        flags: fc.integer({ min: 0, max: 255 }),
        streamId: fc.constantFrom(0, 1, 3, 2 ** 31 - 1),
        payload: fc.uint8Array({ maxLength: 40 }),
      })
      .map((f) => frame(f.type, f.flags, f.streamId, f.payload));
    const http2 = fc.array(anyFrame, { maxLength: 12 }).map((frames) => Buffer.concat([CLIENT_PREFACE, ...frames]));
    const garbage = fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes));
    await withServer(() =>
      fc.assert(
        fc.asyncProperty(fc.oneof(http2, garbage), places, (bytes, cuts) => attack(cutAt(bytes, cuts))),
        { numRuns: 150 },
      ),
    );
  });
});

test.each([
  ['a bad content type', [':method', 'POST', ':scheme', 'http', ':path', '/a', ':authority', 'localhost']],
  [
    'an unknown method',
    [
      ':method',
      'POST',
      ':scheme',
      'http',
      ':path',
      '/a',
      ':authority',
      'localhost',
      'content-type',
      'application/grpc',
    ],
  ],
])('a request with %s that is reset at once does not crash the process', async (_what, pairs) => {
  const headers = pairs.flatMap((name, i) =>
    i % 2 === 0 ? [{ name, value: pairs[i + 1] ?? '', neverIndexed: false }] : [],
  );
  const request = frame(HEADERS, 0x4, 1, encodeLiterals(headers));
  const reset = frame(RST_STREAM, 0, 1, Buffer.from('00000008', 'hex'));
  await withServer(() => attack([Buffer.concat([CLIENT_PREFACE, frame(4, 0, 0, Buffer.alloc(0)), request, reset])]));
});

test('FM-13.7 a server announces that it takes 1000 calls at a time', async () => {
  await using _server = await serveCmd(socket.path, {});
  const connection = connect(socket.path);
  const settings = await new Promise<Buffer>((resolve) => connection.once('data', resolve));
  connection.destroy();
  const MAX_CONCURRENT_STREAMS = 3;
  const [first] = splitFrames(settings);
  expect(first?.payload.readUInt16BE(0)).toBe(MAX_CONCURRENT_STREAMS);
  expect(first?.payload.readUInt32BE(2)).toBe(1_000);
});
