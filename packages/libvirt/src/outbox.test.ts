import { expect, test } from 'vitest';
import { Outbox } from './outbox.ts';

function recording(): { readonly writes: string[]; readonly outbox: Outbox } {
  const writes: string[] = [];
  const transport = {
    start: () => undefined,
    write: (bytes: Uint8Array) => void writes.push(Buffer.from(bytes).toString()),
    destroy: () => undefined,
  };
  return { writes, outbox: new Outbox(transport) };
}

test('joins the packets of one turn, also those that answers in the same turn cause', async () => {
  const { writes, outbox } = recording();
  outbox.send(Buffer.from('a'));
  const other = async (): Promise<void> => {
    outbox.send(Buffer.from('b'));
  };
  await other();
  expect(writes).toEqual(['ab']);
  outbox.send(Buffer.from('c'));
  await Promise.resolve();
  expect(writes).toEqual(['ab', 'c']);
});

test('keeps the order when something is sent at once', async () => {
  const { writes, outbox } = recording();
  outbox.send(Buffer.from('call'));
  outbox.sendNow(Buffer.from('pong'));
  await Promise.resolve();
  expect(writes).toEqual(['call', 'pong']);
});

test('joins at most 64 KiB, and sends nothing once cleared', async () => {
  const { writes, outbox } = recording();
  const big = Buffer.alloc(40_000, 'x');
  outbox.send(big);
  outbox.send(big);
  outbox.send(Buffer.from('y'));
  await Promise.resolve();
  expect(writes.map((one) => one.length)).toEqual([40_000, 40_001]);
  outbox.send(Buffer.from('lost'));
  outbox.clear();
  await Promise.resolve();
  expect(writes).toHaveLength(2);
});
