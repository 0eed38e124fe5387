import { type Duplex, duplexPair } from 'node:stream';

import { expect, test } from 'vitest';

import type { DataChunk } from '../gen/kubevirt/nbd/nbd.ts';
import { connectNbd, type NbdClient } from './client.ts';
import { type NbdHandlers, serveNbd } from './server.ts';

/** A client and a server, each at one end of a connection. */
function pair(handlers: Partial<NbdHandlers>): { readonly client: NbdClient; readonly connection: Duplex } {
  const [near, far] = duplexPair();
  serveNbd(far, { map: none, read: none, ...handlers }, () => undefined);
  return { client: connectNbd(near), connection: near };
}

async function* none(): AsyncGenerator<never> {
  throw new Error('not asked for');
}

async function collect<T>(answers: AsyncIterable<T>): Promise<readonly T[]> {
  const all: T[] = [];
  for await (const answer of answers) all.push(answer);
  return all;
}

test('large and empty answers arrive whole', async () => {
  const sizes = [0, 1, 262_144, 7];
  const { client } = pair({
    async *read({ export_name, offset }) {
      for (const size of sizes) yield { offset, data: Buffer.alloc(size, export_name) };
    },
  });
  using held = client;
  const chunks = await collect(held.read({ export_name: 'x', offset: 2n ** 60n }));
  expect(chunks.map(({ data }) => data.length)).toEqual(sizes);
  expect(chunks.every(({ offset }) => offset === 2n ** 60n)).toBe(true);
});

test('the launcher’s words about a failure, whatever letters they have', async () => {
  const { client } = pair({
    async *map() {
      yield { extents: [], next_offset: 0n };
      throw new Error('100 % kaputt: Größe');
    },
  });
  using held = client;
  await expect(collect(held.map({}))).rejects.toMatchObject({ code: 'Failed', detail: '100 % kaputt: Größe' });
  await expect(collect(held.read({}))).rejects.toMatchObject({ detail: 'not asked for' });
});

test('a connection that is cut ends the call', async () => {
  const { client, connection } = pair({
    async *read() {
      yield { offset: 0n, data: Buffer.from('x') };
      await new Promise(() => undefined);
    },
  });
  using held = client;
  const chunks: AsyncIterator<DataChunk> = held.read({})[Symbol.asyncIterator]();
  await chunks.next();
  const failing = expect(chunks.next()).rejects.toMatchObject({ code: 'Disconnected' });
  connection.destroy();
  await failing;
});
