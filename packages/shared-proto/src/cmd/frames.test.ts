import { createConnection, createServer, type Socket } from 'node:net';

import { expect, test } from 'vitest';

import { connectCmd, serveCmd } from '../index.ts';
import { splitFrames } from '../testing/frames.ts';
import { tempSocket } from '../testing/sockets.ts';

const PREFACE_BYTES = 24;
const PING = 6;
const ACK = 1;
const CALLS = 50;

test('a client never pings by itself, since servers written in Go close over it', async () => {
  using behind = tempSocket();
  using front = tempSocket();
  await using _server = await serveCmd(behind.path, { ping: () => undefined });
  const sent: Buffer[] = [];
  const sockets = new Set<Socket>();
  const tee = createServer((client) => {
    const server = createConnection(behind.path);
    for (const socket of [client, server]) sockets.add(socket.on('error', () => undefined));
    client.on('data', (bytes) => void sent.push(bytes as Buffer));
    client.pipe(server).pipe(client);
  });
  await new Promise<void>((resolve) => tee.listen(front.path, resolve));
  {
    using client = await connectCmd(front.path);
    for (let i = 0; i < CALLS; i++) expect((await client.ping()).ok).toBe(true);
  }
  for (const socket of sockets) socket.destroy();
  await new Promise((resolve) => tee.close(resolve));
  const frames = splitFrames(Buffer.concat(sent).subarray(PREFACE_BYTES));
  expect(frames.length).toBeGreaterThan(CALLS);
  expect(frames.filter(({ type, flags }) => type === PING && (flags & ACK) === 0)).toEqual([]);
});
