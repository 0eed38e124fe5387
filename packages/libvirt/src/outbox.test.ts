import { PassThrough } from 'node:stream';
import { expect, test } from 'vitest';
import type { OutgoingDescriptors } from './descriptors.ts';
import { Outbox } from './outbox.ts';

/** A transport that keeps what it is given; `taken` lets the kernel take the writes so far. */
function recording() {
  const writes: string[] = [];
  const failures: unknown[] = [];
  const callbacks: ((error?: Error) => void)[] = [];
  const transport = {
    start: () => undefined,
    write: (bytes: Uint8Array, onWritten?: (error?: Error) => void) => {
      writes.push(Buffer.from(bytes).toString());
      if (onWritten !== undefined) callbacks.push(onWritten);
    },
    sendDescriptors: (descriptors: OutgoingDescriptors, signal: AbortSignal) =>
      descriptors.send(new PassThrough(), signal),
    destroy: () => undefined,
  };
  const taken = (error?: Error): void => callbacks.splice(0).forEach((callback) => callback(error));
  return { writes, failures, taken, outbox: new Outbox(transport, (error) => failures.push(error)) };
}

/** Descriptors that are sent when the test says so. */
function descriptors(writes: string[], name: string) {
  const sent = Promise.withResolvers<undefined>();
  const state = { isClosed: false };
  const outgoing: OutgoingDescriptors = {
    send: (_stream, signal) => {
      writes.push(name);
      signal.addEventListener('abort', () => sent.reject(new Error('given up')));
      return sent.promise;
    },
    [Symbol.dispose]: () => {
      state.isClosed = true;
    },
  };
  return { outgoing, state, ...sent };
}

/** Lets everything run that does not wait for the test. */
const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

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

test('lets nothing come between a packet, its descriptors and what is sent later', async () => {
  const { writes, taken, outbox } = recording();
  const [first, second] = [descriptors(writes, '<1>'), descriptors(writes, '<2>')];
  outbox.send(Buffer.from('before'));
  outbox.sendWithDescriptors(Buffer.from('call 1'), first.outgoing);
  outbox.send(Buffer.from('a'));
  outbox.sendNow(Buffer.from('b'));
  outbox.sendWithDescriptors(Buffer.from('call 2'), second.outgoing);
  outbox.send(Buffer.from('c'));
  await settled();
  expect(writes).toEqual(['before', 'call 1']);
  taken();
  await settled();
  expect(writes).toEqual(['before', 'call 1', '<1>']);
  expect(first.state.isClosed).toBe(false);
  first.resolve(undefined);
  await settled();
  expect(first.state.isClosed).toBe(true);
  expect(writes.slice(3)).toEqual(['a', 'b', 'call 2']);
  taken();
  await settled();
  second.resolve(undefined);
  await settled();
  expect(writes.slice(6)).toEqual(['<2>', 'c']);
  expect(second.state.isClosed).toBe(true);
});

test('says that descriptors did not go out, and sends nothing more', async () => {
  const { writes, failures, taken, outbox } = recording();
  const { outgoing, state, reject } = descriptors(writes, '<1>');
  outbox.sendWithDescriptors(Buffer.from('call'), outgoing);
  outbox.send(Buffer.from('later'));
  taken();
  await settled();
  reject(new Error('nobody reads'));
  await settled();
  expect(failures).toEqual([new Error('nobody reads')]);
  expect(writes).toEqual(['call', '<1>']);
  expect(state.isClosed).toBe(true);
});

test('says that the packet of descriptors did not go out', async () => {
  const { writes, failures, taken, outbox } = recording();
  const { outgoing, state } = descriptors(writes, '<1>');
  outbox.sendWithDescriptors(Buffer.from('call'), outgoing);
  taken(new Error('EPIPE'));
  await settled();
  expect(failures).toEqual([new Error('EPIPE')]);
  expect([writes, state.isClosed]).toEqual([['call'], true]);
});

test.each(['while the packet waits', 'while the descriptors are sent'])(
  'closes all descriptors when it is cleared %s, and complains of nothing',
  async (when) => {
    const { writes, failures, taken, outbox } = recording();
    const [sent, waiting] = [descriptors(writes, '<1>'), descriptors(writes, '<2>')];
    outbox.sendWithDescriptors(Buffer.from('call'), sent.outgoing);
    outbox.sendWithDescriptors(Buffer.from('later'), waiting.outgoing);
    if (when === 'while the descriptors are sent') taken();
    await settled();
    outbox.clear();
    await settled();
    taken();
    await settled();
    expect([sent.state.isClosed, waiting.state.isClosed]).toEqual([true, true]);
    expect(failures).toEqual([]);
    expect(writes).not.toContain('later');
  },
);
