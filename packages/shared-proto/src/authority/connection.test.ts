import { randomBytes } from 'node:crypto';
import { createConnection, createServer, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';

import { afterEach, beforeEach, describe, expect, test } from 'vitest';

import { frame } from '../testing/frames.ts';
import { tempSocket, type TempSocket, until } from '../testing/sockets.ts';
import { normaliseAuthority } from './connection.ts';
import { HeaderLimitError } from './filter.ts';
import { CLIENT_PREFACE, CONTINUATION, HEADERS } from './frames.ts';

let socket: TempSocket;
beforeEach(() => {
  socket = tempSocket();
});
afterEach(() => socket[Symbol.dispose]());

/** A pair of ends: the peer's raw socket, and the filtered connection as the server gets it. */
async function openPair(): Promise<{ peer: Socket; served: Duplex } & Disposable> {
  const server = createServer({ allowHalfOpen: true });
  const accepted = new Promise<Socket>((resolve) => server.once('connection', resolve));
  await new Promise<void>((resolve) => server.listen(socket.path, resolve));
  const peer = createConnection({ path: socket.path, allowHalfOpen: true });
  const served = normaliseAuthority(await accepted);
  peer.on('error', () => undefined);
  return {
    peer,
    served,
    [Symbol.dispose]: () => {
      peer.destroy();
      served.destroy();
      server.close();
    },
  };
}

/** Reads to the end of one direction, and leaves the other one alone. */
function readAll(stream: Duplex): Promise<Buffer> {
  const chunks: Buffer[] = [];
  stream.on('data', (chunk: Buffer) => chunks.push(chunk));
  return new Promise((resolve) => stream.once('end', () => resolve(Buffer.concat(chunks))));
}

describe('a filtered connection', () => {
  test('carries bytes both ways, and the end of one side leaves the other open', async () => {
    using pair = await openPair();
    const sent = randomBytes(2_000_000);
    const answer = randomBytes(2_000_000);
    pair.peer.end(sent);
    const received = await readAll(pair.served);
    expect(received.equals(sent)).toBe(true);
    pair.served.end(answer);
    expect((await readAll(pair.peer)).equals(answer)).toBe(true);
  });

  test('slows a sender down whose bytes nobody reads', async () => {
    using pair = await openPair();
    let taken = 0;
    const block = Buffer.alloc(65_536);
    const pump = (): void => {
      while (taken < 64 * 1_048_576) {
        taken += block.length;
        if (!pair.peer.write(block)) return void pair.peer.once('drain', pump);
      }
    };
    pump();
    // Somebody who waits for bytes, but takes none.
    pair.served.on('readable', () => undefined);
    await until(() => pair.peer.writableNeedDrain && pair.served.readableLength > 0, 'the sender has to wait');
    expect(taken).toBeLessThan(8 * 1_048_576);
    expect(pair.served.readableLength).toBeLessThan(1_048_576);
  });

  test('ends when the peer is cut off, and closes when the server has ended its side too', async () => {
    using pair = await openPair();
    pair.served.on('error', () => undefined);
    pair.served.resume();
    pair.peer.destroy();
    await until(() => pair.served.readableEnded, 'the end is seen');
    pair.served.end();
    await until(() => pair.served.destroyed, 'the served end is closed');
  });

  test('closes the peer when the server closes it', async () => {
    using pair = await openPair();
    pair.peer.resume();
    pair.served.destroy();
    await until(() => pair.peer.readableEnded || pair.peer.destroyed, 'the peer has seen the end');
  });

  test('fails and closes when a header block is over the limit', async () => {
    using pair = await openPair();
    const errors: Error[] = [];
    pair.served.on('error', (error) => errors.push(error));
    pair.served.resume();
    const part = frame(CONTINUATION, 0, 1, Buffer.alloc(16_384));
    pair.peer.write(Buffer.concat([CLIENT_PREFACE, frame(HEADERS, 0, 1, Buffer.alloc(1)), part, part, part, part]));
    await until(() => pair.served.destroyed, 'the connection is closed');
    expect(errors[0]).toBeInstanceOf(HeaderLimitError);
  });
});
