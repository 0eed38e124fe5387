import { existsSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { dirname, join } from 'node:path';

import { Client, credentials, Metadata } from '@grpc/grpc-js';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';

import { HEADERS } from '../authority/frames.ts';
import { HpackDecoder } from '../authority/hpack.ts';
import { readRecordedMessages } from '../testing/bundle.ts';
import { splitFrames } from '../testing/frames.ts';
import { tempSocket, type TempSocket, until } from '../testing/sockets.ts';
import type { CmdHandlers } from './api.ts';
import { connectCmd } from './client.ts';
import { vmiRequest } from './requests.ts';
import { CMD_RPC_NAMES, methodName } from './rpcs.ts';
import { serveCmd } from './server.ts';

let socket: TempSocket;
beforeEach(() => {
  socket = tempSocket();
});
afterEach(() => socket[Symbol.dispose]());

const pings: CmdHandlers = { ping: async () => undefined, getDomain: async () => ({ domain: '{}' }) };

async function openSocket(path: string): Promise<Socket> {
  const connection = connect(path);
  connection.on('error', () => undefined);
  await new Promise((resolve) => connection.once('connect', resolve));
  return connection;
}

/** Calls with bytes, as a peer of any age or none may. */
function callRaw(
  client: Client,
  path: string,
  bytes: Buffer,
): Promise<{ code: number; bytes: Buffer; details: string }> {
  const asIs = (b: Buffer): Buffer => b;
  return new Promise((resolve) => {
    client.makeUnaryRequest(path, asIs, asIs, bytes, new Metadata(), {}, (error, value) =>
      resolve({ code: error?.code ?? 0, bytes: value ?? Buffer.alloc(0), details: error?.details ?? '' }),
    );
  });
}

const rawClient = (path: string): Client =>
  new Client(`unix:${path}`, credentials.createInsecure(), { 'grpc.max_send_message_length': -1 });

describe('bad requests get an error and never a crash', () => {
  const everything = Object.fromEntries(CMD_RPC_NAMES.map((rpc) => [methodName(rpc), async () => undefined]));
  /** Decided by the launcher behind the server, or by what Go's stubs say. */
  const notOurs = /exec|guest ping|inject|backup|checkpoint|VM stats|unknown VMI|wrong type|malformed options/;
  const cases = readRecordedMessages().filter((m) => m.scenario === 'malformed-requests' && m.release === 'v1.9.0');

  test.each(cases.filter(({ label }) => !notOurs.test(label ?? '')).map((m) => [m.label ?? '', m] as const))(
    'as v1.9.0: %s',
    async (_label, message) => {
      await using _server = await serveCmd(socket.path, everything);
      const client = rawClient(socket.path);
      const answer = await callRaw(client, message.method, Buffer.from(message.request.base64, 'base64'));
      client.close();
      expect(answer.code).toBe(message.grpcStatus.code);
      expect(answer.bytes.toString('base64')).toBe(message.response?.base64 ?? '');
      if (answer.code === 13) expect(answer.details).toBe(message.grpcStatus.message);
    },
  );

  test.each<[string, Buffer]>([
    ['no VMI at all', Buffer.alloc(0)],
    ['null', Buffer.from('0a060a046e756c6c', 'hex')],
    ['a VMI that is not UTF-8', Buffer.concat([Buffer.from('0a050a03', 'hex'), Buffer.from([0x22, 0xff, 0x22])])],
  ])('%s', async (_what, request) => {
    await using _server = await serveCmd(socket.path, everything);
    const client = rawClient(socket.path);
    const answer = await callRaw(client, '/kubevirt.cmd.v1.Cmd/SyncVirtualMachine', request);
    client.close();
    expect(answer.code).toBe(0);
    expect(answer.bytes.toString()).toContain('No valid vmi object present in command server request');
  });

  test('JSON that is nested too deep', async () => {
    await using _server = await serveCmd(socket.path, everything);
    using client = await connectCmd(socket.path);
    const deep = `{"a":${'['.repeat(100_000)}${']'.repeat(100_000)}}`;
    const brackets = `{"a":"${'['.repeat(100_000)}\\""}`;
    expect((await client.syncVirtualMachine(vmiRequest(deep))).ok).toBe(false);
    expect((await client.syncVirtualMachine(vmiRequest(brackets))).ok).toBe(true);
  });

  test('options are there even if the peer sent none', async () => {
    const seen: unknown[] = [];
    await using _server = await serveCmd(socket.path, {
      finalizeVirtualMachineMigration: async ({ options }) => void seen.push(options?.interfaceMigration),
    });
    const client = rawClient(socket.path);
    await callRaw(client, '/kubevirt.cmd.v1.Cmd/FinalizeVirtualMachineMigration', Buffer.from('0a040a027b7d', 'hex'));
    client.close();
    expect(seen).toEqual([new Map()]);
  });
});

describe('FM-1.7 message sizes', () => {
  test('a server takes more than 4 MiB, and both ends refuse to send more', async () => {
    await using _server = await serveCmd(socket.path, {
      syncVirtualMachine: async () => undefined,
      getDomain: async () => ({ domain: 'x'.repeat(5 * 1_048_576) }),
    });
    const big = Buffer.from(`{"a":"${'x'.repeat(5 * 1_048_576)}"}`);
    const raw = rawClient(socket.path);
    const header = Buffer.concat([lengthDelimited(lengthDelimited(big))]);
    const answer = await callRaw(raw, '/kubevirt.cmd.v1.Cmd/SyncVirtualMachine', header);
    raw.close();
    expect(answer.bytes.toString('hex')).toBe('0801');
    using client = await connectCmd(socket.path);
    const sent = await client.syncVirtualMachine(vmiRequest(big));
    expect(!sent.ok && sent.error.code).toBe('TooLarge');
    expect(!sent.ok && sent.error.detail).toMatch(/^trying to send message larger than max \(52429\d\d vs. 4194304\)$/);
    const received = await client.getDomain();
    expect(!received.ok && received.error.code).toBe('TooLarge');
    expect((await client.call('SyncVirtualMachine', vmiRequest('{}'))).ok).toBe(true);
  });

  test('an error text that does not fit into a header is shortened, and the connection goes on', async () => {
    await using _server = await serveCmd(socket.path, {
      exec: async () => {
        throw new Error(`guest said: ${'\u{1f4a5}\ud800ß'.repeat(100_000)}`);
      },
    });
    using client = await connectCmd(socket.path);
    const lost = Promise.withResolvers<undefined>();
    client.onConnectionLost(() => lost.reject(new Error('the connection is lost')));
    const calls = [1, 2].map(() => client.exec({ domainName: 'ns_vm', Command: 'id', timeoutSeconds: 1 }));
    for (const result of await Promise.race([Promise.all(calls), lost.promise.then(() => [])])) {
      expect(!result.ok && result.error.code).toBe('Rpc');
      expect(!result.ok && result.error.detail).toMatch(/^guest said: .*\.\.\. \(400012 characters\)$/su);
    }
  });

  function lengthDelimited(bytes: Buffer): Buffer {
    const length: number[] = [];
    for (let rest = bytes.length; ; rest = Math.floor(rest / 128)) {
      length.push(rest >= 128 ? (rest % 128) | 0x80 : rest);
      if (rest < 128) break;
    }
    return Buffer.concat([Buffer.of(0x0a, ...length), bytes]);
  }
});

describe('FM-1.1 a client of v1.0', () => {
  test('gets all its answers', async () => {
    await using _server = await serveCmd(socket.path, pings);
    const connection = await openSocket(socket.path);
    const chunks: Buffer[] = [];
    connection.on('data', (chunk: Buffer) => chunks.push(chunk));
    connection.write(readFileSync(join(import.meta.dirname, '../../testdata/v1.0.1/cmd-client.bin')));
    const ends = (): ReturnType<typeof splitFrames> =>
      splitFrames(Buffer.concat(chunks)).filter((f) => f.type === HEADERS && (f.flags & 1) === 1);
    await until(() => ends().length >= 6, 'six streams have ended');
    connection.destroy();
    const decoder = new HpackDecoder(100_000);
    const statuses = splitFrames(Buffer.concat(chunks))
      .filter((f) => f.type === HEADERS)
      .map((f) => [f.streamId, decoder.decode(f.payload).find(({ name }) => name === 'grpc-status')?.value] as const)
      .filter(([, status]) => status !== undefined);
    expect(Object.fromEntries(statuses)).toEqual({ 1: '0', 3: '0', 5: '0', 7: '0', 9: '12', 11: '0' });
  });
});

describe('connections', () => {
  test('one that never sends a byte is taken and forgotten', async () => {
    const faults: Error[] = [];
    await using server = await serveCmd(socket.path, pings, { onFault: (error) => faults.push(error) });
    for (let i = 0; i < 20; i++) (await openSocket(socket.path)).destroy();
    await until(() => server.connectionCount === 0, 'all of them are forgotten');
    using client = await connectCmd(socket.path);
    expect((await client.ping()).ok).toBe(true);
    expect(faults).toEqual([]);
  });

  test('one that is not HTTP/2 is closed, and the others go on', async () => {
    await using server = await serveCmd(socket.path, pings);
    using client = await connectCmd(socket.path);
    const garbage = await openSocket(socket.path);
    garbage.resume();
    garbage.write('GET / HTTP/1.1\r\n\r\n');
    await new Promise((resolve) => garbage.once('close', resolve));
    await until(() => server.connectionCount === 1, 'only the good one is left');
    expect((await client.ping()).ok).toBe(true);
  });

  test('one over the limit is closed at once and reported', async () => {
    const faults: string[] = [];
    await using server = await serveCmd(socket.path, pings, {
      maxConnections: 2,
      onFault: (error) => faults.push(error.message),
    });
    const first = await openSocket(socket.path);
    const second = await openSocket(socket.path);
    await until(() => server.connectionCount === 2, 'both are open');
    const third = await openSocket(socket.path);
    third.resume();
    await new Promise((resolve) => third.once('close', resolve));
    expect(faults).toEqual(['refused a connection: 2 are open']);
    first.destroy();
    second.destroy();
  });
});

describe('stopping', () => {
  test('lets a running call end and removes the socket', async () => {
    let finish = (): void => undefined;
    const server = await serveCmd(socket.path, {
      ping: () =>
        new Promise<void>((resolve) => {
          finish = resolve;
        }),
    });
    using client = await connectCmd(socket.path);
    const call = client.ping();
    await until(() => finish.length === 1, 'the call runs');
    const stopping = server.stop(20_000);
    finish();
    expect((await call).ok).toBe(true);
    await stopping;
    expect(existsSync(socket.path)).toBe(false);
    expect(server.connectionCount).toBe(0);
  });

  test('cuts a call that does not end within the grace time', async () => {
    const server = await serveCmd(socket.path, { ping: () => new Promise<void>(() => undefined) });
    using client = await connectCmd(socket.path);
    const call = client.ping();
    await until(() => server.connectionCount === 1, 'connected');
    await server.stop(50);
    expect((await call).ok).toBe(false);
  });

  test('leaves the socket under its new name after a rename, as launchers do', async () => {
    const server = await serveCmd(socket.path, pings);
    renameSync(socket.path, `${socket.path}-ready`);
    await server.stop();
    expect(existsSync(`${socket.path}-ready`)).toBe(true);
  });

  test('leaves the socket of a server that has taken its place', async () => {
    const first = await serveCmd(socket.path, {});
    await using _second = await serveCmd(socket.path, pings);
    await first.stop();
    using client = await connectCmd(socket.path);
    expect((await client.ping()).ok).toBe(true);
    expect(readdirSync(dirname(socket.path))).toEqual(['launcher-sock']);
  });

  test('a file in the way is replaced, and a place that cannot be had is an error', async () => {
    writeFileSync(socket.path, 'old');
    await using _server = await serveCmd(socket.path, pings);
    await expect(serveCmd(`${socket.path}/below/a/socket`, pings)).rejects.toMatchObject({ code: 'ListenFailed' });
    await expect(serveCmd(dirname(socket.path), pings)).rejects.toMatchObject({ code: 'ListenFailed' });
    expect(readdirSync(dirname(socket.path))).toEqual(['launcher-sock']);
  });
});
