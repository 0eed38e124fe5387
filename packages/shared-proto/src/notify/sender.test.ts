import { afterEach, beforeEach, describe, expect, test } from 'vitest';

import type { CallResult } from '../calls.ts';
import { ProtoError, type ProtoErrorCode } from '../errors.ts';
import type { Response } from '../gen/kubevirt/notify/v1/notify.ts';
import { tempSocket, type TempSocket } from '../testing/sockets.ts';
import type { NotifyClient } from './api.ts';
import { connectNotify } from './client.ts';
import { createNotifySender, type NotifySenderDeps } from './sender.ts';
import { serveNotify } from './server.ts';

const OK: CallResult<Response> = { ok: true, value: { success: true, message: '' } };
const failed = (code: ProtoErrorCode): CallResult<Response> => ({ ok: false, error: new ProtoError(code, code) });

/** A world with a clock of its own, whose connections give the answers in order. */
function createWorld(answers: readonly CallResult<Response>[]): NotifySenderDeps & { readonly log: string[] } {
  const log: string[] = [];
  const left = [...answers];
  let now = 0;
  const answer = (what: string): Promise<CallResult<Response>> => {
    log.push(`${now} ${what}`);
    return Promise.resolve(left.shift() ?? failed('Unavailable'));
  };
  const client: NotifyClient = {
    socketPath: '',
    version: 1,
    handleDomainEvent: (event) => answer(`domain ${event.eventType ?? ''}`),
    handleK8sEvent: () => answer('k8s'),
    onConnectionLost: () => ({ [Symbol.dispose]: () => undefined }),
    close: () => void log.push(`${now} close`),
    [Symbol.dispose]: () => undefined,
  };
  return {
    log,
    connect: () => {
      log.push(`${now} connect`);
      return Promise.resolve(client);
    },
    nowMs: () => now,
    sleep: async (ms) => {
      now += ms;
    },
  };
}

describe('FM-2.1 sending an event', () => {
  test('keeps its connection from one event to the next', async () => {
    const world = createWorld([OK, OK]);
    const sender = createNotifySender('/socket', {}, world);
    await sender.sendDomainEvent({ eventType: 'ADDED' });
    await sender.sendK8sEvent({});
    expect(world.log).toEqual(['0 connect', '0 domain ADDED', '0 k8s']);
  });

  test('starts over with dial and version check after an RPC error, a second later', async () => {
    const world = createWorld([failed('Unavailable'), failed('DeadlineExceeded'), OK]);
    const sender = createNotifySender('/socket', {}, world);
    expect((await sender.sendDomainEvent({ eventType: 'A' })).ok).toBe(true);
    expect(world.log).toEqual([
      ...['0 connect', '0 domain A', '0 close'],
      ...['1000 connect', '1000 domain A', '1000 close'],
      ...['2000 connect', '2000 domain A'],
    ]);
  });

  test('does not repeat an event that the handler has refused', async () => {
    const world = createWorld([failed('Failed')]);
    const sender = createNotifySender('/socket', {}, world);
    const result = await sender.sendDomainEvent({ eventType: 'A' });
    expect(!result.ok && result.error.code).toBe('Failed');
    expect(world.log).toEqual(['0 connect', '0 domain A']);
  });

  test.each<[string, ProtoError]>([
    ['is too large for any handler', new ProtoError('TooLarge', 'larger than max', { grpcCode: 8, isOversized: true })],
    ['the handler has no method for', new ProtoError('Unimplemented', 'unknown method', { grpcCode: 12 })],
  ])('FM-1.3 an event that %s holds up the next one not for 20 s', async (_what, error) => {
    const world = createWorld([{ ok: false, error }, OK]);
    const sender = createNotifySender('/socket', {}, world);
    expect(await sender.sendDomainEvent({ eventType: 'A' })).toEqual({ ok: false, error });
    expect((await sender.sendDomainEvent({ eventType: 'B' })).ok).toBe(true);
    expect(world.log).toEqual(['0 connect', '0 domain A', '0 domain B']);
  });

  test('an event that a peer has no room for just now is sent again', async () => {
    const error = new ProtoError('TooLarge', 'Bandwidth exhausted or memory limit exceeded', { grpcCode: 8 });
    const world = createWorld([{ ok: false, error }, OK]);
    expect((await createNotifySender('/socket', {}, world).sendDomainEvent({ eventType: 'A' })).ok).toBe(true);
  });

  test('gives up after 20 seconds and goes on with the next event', async () => {
    const world = createWorld([...Array<CallResult<Response>>(20).fill(failed('Unavailable')), OK]);
    const sender = createNotifySender('/socket', {}, world);
    const [first, second] = await Promise.all([
      sender.sendDomainEvent({ eventType: 'A' }),
      sender.sendDomainEvent({ eventType: 'B' }),
    ]);
    expect(!first.ok && first.error.code).toBe('Unavailable');
    expect(second.ok).toBe(true);
    const sends = world.log.filter((line) => line.includes('domain'));
    expect(sends).toHaveLength(21);
    expect(sends.at(-2)).toBe('19000 domain A');
    expect(sends.at(-1)).toBe('19000 domain B');
  });

  test('keeps the order of its events', async () => {
    const world = createWorld([failed('Unavailable'), OK, OK, OK]);
    const sender = createNotifySender('/socket', {}, world);
    await Promise.all(['A', 'B', 'C'].map((eventType) => sender.sendDomainEvent({ eventType })));
    expect(world.log.filter((line) => line.includes('domain')).map((line) => line.slice(-1))).toEqual([
      'A',
      'A',
      'B',
      'C',
    ]);
  });

  test('refuses events beyond its bound instead of keeping them', async () => {
    const world = createWorld([OK, OK]);
    const sender = createNotifySender('/socket', { maxWaiting: 2 }, world);
    const results = await Promise.all([1, 2, 3].map(() => sender.sendDomainEvent({})));
    expect(results.map((result) => (result.ok ? 'ok' : result.error.code))).toEqual(['ok', 'ok', 'TooLarge']);
  });

  test('an abort ends the tries', async () => {
    const world = createWorld([]);
    const sender = createNotifySender('/socket', {}, world);
    const abort = new AbortController();
    const connectThenAbort = { ...world, sleep: async () => abort.abort() };
    const result = await createNotifySender('/socket', {}, connectThenAbort).sendDomainEvent({}, abort.signal);
    expect(!result.ok && result.error.code).toBe('Aborted');
    await sender[Symbol.asyncDispose]();
    const late = await sender.sendDomainEvent({});
    expect(!late.ok && late.error.code).toBe('Aborted');
  });
});

describe('FM-2.1 with a real server', () => {
  let socket: TempSocket;
  beforeEach(() => {
    socket = tempSocket();
  });
  afterEach(() => socket[Symbol.dispose]());

  test('the event after each of three restarts arrives', async () => {
    const seen: string[] = [];
    const serve = (): ReturnType<typeof serveNotify> =>
      serveNotify(socket.path, {
        handleDomainEvent: async ({ eventType }) => void seen.push(eventType),
        handleK8sEvent: async () => undefined,
      });
    await using sender = createNotifySender(socket.path, { retryIntervalMs: 10 });
    for (const eventType of ['1', '2', '3', '4']) {
      const sending = sender.sendDomainEvent({ eventType });
      await using _server = await serve();
      expect((await sending).ok).toBe(true);
    }
    expect(seen).toEqual(['1', '2', '3', '4']);
  });

  test('FM-1.7 an event larger than 4 MiB fails before it is sent, and says how large it is', async () => {
    await using _server = await serveNotify(socket.path, {
      handleDomainEvent: async () => undefined,
      handleK8sEvent: async () => undefined,
    });
    await using sender = createNotifySender(socket.path);
    const result = await sender.sendDomainEvent({ domainJSON: Buffer.alloc(5_000_000) });
    const text = /^trying to send message larger than max \(50000\d\d vs\. 4194304\)$/;
    expect(!result.ok && result.error.detail).toMatch(text);
    expect((await sender.sendDomainEvent({ eventType: 'B' })).ok).toBe(true);
  });

  test('a server that is not there fails with what was tried', async () => {
    await using sender = createNotifySender(socket.path, { retryIntervalMs: 10, totalTimeoutMs: 30 });
    const result = await sender.sendDomainEvent({});
    expect(!result.ok && result.error.message).toBe(`could not connect to ${socket.path}: connect ENOENT`);
    await expect(connectNotify(socket.path)).rejects.toMatchObject({ code: 'DialFailed' });
  });
});
