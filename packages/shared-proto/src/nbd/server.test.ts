import { createServer, type Server } from 'node:net';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { duplexPair } from 'node:stream';

import { Client, type ClientReadableStream, credentials, status } from '@grpc/grpc-js';
import { afterEach, beforeEach, expect, test } from 'vitest';

import { type DataChunk, MapRequest, MapResponse, NBDService, ReadRequest } from '../gen/kubevirt/nbd/nbd.ts';
import { type NbdHandlers, type NbdServer, serveNbd } from './server.ts';

let root: string;
let listener: Server;
let server: NbdServer;
let client: Client;
const faults: Error[] = [];

/** A caller whose connection is handed to the server, as an export server hands on its tunnel. */
async function start(handlers: Partial<NbdHandlers>): Promise<void> {
  const none = { map: never, read: never };
  const path = join(root, 'socket');
  listener = createServer((socket) => {
    const [near, far] = duplexPair();
    socket.pipe(near).pipe(socket);
    socket.on('error', () => near.destroy());
    near.on('close', () => socket.destroy());
    server = serveNbd(far, { ...none, ...handlers }, (error) => faults.push(error));
  });
  await new Promise<void>((resolve) => listener.listen(path, resolve));
  client = new Client(`unix:${path}`, credentials.createInsecure(), { 'grpc.default_authority': '' });
}

async function* never(): AsyncGenerator<never> {
  throw new Error('');
}

function read(request: Partial<ReadRequest>): ClientReadableStream<DataChunk> {
  const { path, requestSerialize, responseDeserialize } = NBDService.read;
  return client.makeServerStreamRequest(path, requestSerialize, responseDeserialize, ReadRequest.fromPartial(request));
}

async function collect<T>(answers: AsyncIterable<T>): Promise<readonly T[]> {
  const all: T[] = [];
  for await (const answer of answers) all.push(answer);
  return all;
}

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'virtwire-nbd-'));
});
afterEach(() => {
  client.close();
  listener.close();
  rmSync(root, { recursive: true, force: true });
});

test('answers stream in order, with every digit of an offset', async () => {
  await start({
    async *map() {
      yield MapResponse.fromPartial({ extents: [{ offset: 2n ** 63n, length: 1n, flags: 3n }], next_offset: 7n });
    },
    async *read({ export_name, offset }) {
      for (let i = 0n; i < 40n; i++) yield { offset: offset + i, data: Buffer.from(export_name) };
    },
  });
  const chunks = await collect<DataChunk>(read({ export_name: 'data', offset: 5n }));
  expect(chunks.map(({ offset }) => offset)).toEqual(Array.from({ length: 40 }, (_, i) => 5n + BigInt(i)));
  expect(Buffer.from(chunks[0]?.data ?? []).toString()).toBe('data');
  const { path, requestSerialize, responseDeserialize } = NBDService.map;
  const map = client.makeServerStreamRequest(path, requestSerialize, responseDeserialize, MapRequest.fromPartial({}));
  const [answer] = await collect<MapResponse>(map);
  expect(answer?.extents[0]).toMatchObject({ offset: 2n ** 63n, flags: 3n });
});

test('an error ends the call with its text and the code Unknown', async () => {
  await start({
    async *read() {
      yield { offset: 0n, data: Buffer.from('x') };
      throw new Error('offset 9 is beyond export size 8');
    },
  });
  await expect(collect(read({}))).rejects.toMatchObject({
    ...{ code: status.UNKNOWN, details: 'offset 9 is beyond export size 8' },
  });
});

test('a caller that reads slowly slows the server down, and one that goes away ends it', async () => {
  let made = 0;
  const ended = Promise.withResolvers<undefined>();
  await start({
    async *read(_request, signal) {
      signal.addEventListener('abort', () => ended.resolve(undefined));
      for (;;) {
        made++;
        yield { offset: 0n, data: Buffer.alloc(256 * 1024) };
      }
    },
  });
  const call = read({});
  const first = call[Symbol.asyncIterator]();
  await first.next();
  // Turns in which a server that does not wait would have made hundreds.
  for (let turn = 0; turn < 500; turn++) await new Promise((resolve) => setImmediate(resolve));
  expect(made).toBeLessThan(64);
  call.on('error', () => undefined);
  call.cancel();
  await ended.promise;
});

test('a server that is stopped lets the running call end, and closes the connection', async () => {
  const released = Promise.withResolvers<undefined>();
  await start({
    async *read() {
      yield { offset: 0n, data: Buffer.from('a') };
      await released.promise;
      yield { offset: 1n, data: Buffer.from('b') };
    },
  });
  const chunks = read({})[Symbol.asyncIterator]();
  await chunks.next();
  const stopping = server.stop(60_000);
  released.resolve(undefined);
  expect((await chunks.next()).value).toMatchObject({ offset: 1n });
  expect((await chunks.next()).done).toBe(true);
  await stopping;
});

test('a call that does not end is cut after the grace time', async () => {
  await start({
    async *read() {
      yield { offset: 0n, data: Buffer.from('a') };
      await new Promise(() => undefined);
    },
  });
  const chunks = read({})[Symbol.asyncIterator]();
  await chunks.next();
  const failing = expect(chunks.next()).rejects.toBeDefined();
  await server.stop(10);
  await failing;
});
