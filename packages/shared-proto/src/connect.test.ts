import { readdirSync, renameSync } from 'node:fs';
import { createServer, type ServerHttp2Stream } from 'node:http2';
import { connect } from 'node:net';
import { dirname, join } from 'node:path';

import { afterEach, beforeEach, describe, expect, test } from 'vitest';

import { connectCmd } from './cmd/client.ts';
import { serveCmd } from './cmd/server.ts';
import { isConnectionLoss, isRetryable, ProtoError, type ProtoErrorCode } from './errors.ts';
import { chooseVersion } from './handshake.ts';
import { serveBytes } from './testing/raw-services.ts';
import { listenRaw, tempSocket, type TempSocket, until } from './testing/sockets.ts';

let socket: TempSocket;
beforeEach(() => {
  socket = tempSocket();
});
afterEach(() => socket[Symbol.dispose]());

async function failureOf(promise: Promise<unknown>): Promise<ProtoError> {
  const caught = await promise.then(
    () => undefined,
    (error: unknown) => error,
  );
  if (!(caught instanceof ProtoError)) throw new Error(`no ProtoError: ${String(caught)}`);
  return caught;
}

describe('dialling', () => {
  test('a socket that is missing fails at once and names the path', async () => {
    const error = await failureOf(connectCmd(socket.path));
    expect(error.code).toBe('DialFailed');
    expect(error.message).toBe(`could not connect to ${socket.path}: connect ENOENT`);
    expect(isConnectionLoss(error)).toBe(true);
    expect(isRetryable(error)).toBe(true);
  });

  test('a socket whose listener is gone fails at once', async () => {
    const server = await listenRaw(socket.path, () => undefined);
    // As a launcher leaves its socket: renamed, and so not removed when the server closes.
    renameSync(socket.path, `${socket.path}-2`);
    await server[Symbol.asyncDispose]();
    const error = await failureOf(connectCmd(`${socket.path}-2`));
    expect(error.message).toBe(`could not connect to ${socket.path}-2: connect ECONNREFUSED`);
  });

  test('a quiet peer, which accepts and says nothing, fails when the time is over', async () => {
    await using _peer = await listenRaw(socket.path, () => undefined);
    const error = await failureOf(connectCmd(socket.path, { dialTimeoutMs: 100 }));
    expect(error.code).toBe('DialFailed');
    expect(error.message).toBe(`could not connect to ${socket.path}: context deadline exceeded`);
  });

  test.each<[string, Buffer | undefined]>([
    ['closes at once', undefined],
    ['talks garbage', Buffer.from('HTTP/1.1 400 Bad Request\r\n\r\n')],
    ['sends half a frame', Buffer.from([0, 0, 6, 4])],
  ])('a peer that %s fails when the time is over', async (_what, bytes) => {
    await using _peer = await listenRaw(socket.path, (connection) =>
      bytes === undefined ? connection.destroy() : connection.write(bytes),
    );
    expect((await failureOf(connectCmd(socket.path, { dialTimeoutMs: 200 }))).code).toBe('DialFailed');
  });

  test('a signal ends it early', async () => {
    await using _peer = await listenRaw(socket.path, () => undefined);
    const abort = new AbortController();
    const connecting = connectCmd(socket.path, { signal: abort.signal });
    abort.abort();
    expect((await failureOf(connecting)).code).toBe('Aborted');
  });

  test('a path too long for a socket address works, on both sides', async () => {
    const path = join(dirname(socket.path), 'd'.repeat(60), 'e'.repeat(60), 'launcher-sock');
    await using server = await serveCmd(path, { ping: async () => undefined });
    using client = await connectCmd(path);
    expect((await client.ping()).ok).toBe(true);
    expect(server.socketPath).toBe(path);
  });

  test('a path with a doubled first slash works, as old records have it', async () => {
    await using _server = await serveCmd(socket.path, {});
    using client = await connectCmd(`/${socket.path}`);
    expect(client.version).toBe(1);
  });

  test('FM-1.2 the client sends localhost as its authority', async () => {
    const seen: (string | undefined)[] = [];
    const server = createServer((request, response) => {
      seen.push(request.headers[':authority']);
      response.writeHead(200, { 'content-type': 'application/grpc', 'grpc-status': '12' });
      response.end();
    });
    await new Promise<void>((resolve) => server.listen(socket.path, resolve));
    await failureOf(connectCmd(socket.path));
    server.close();
    expect(seen).toEqual(['localhost']);
  });
});

describe('FM-1.6 version negotiation', () => {
  test.each<[string, string, ProtoErrorCode, string]>([
    ['no common version', '0a0102', 'NoCommonVersion', 'no compatible version found, server: [2], client: [1]'],
    [
      'several, none of them ours',
      '0a020302',
      'NoCommonVersion',
      'no compatible version found, server: [3 2], client: [1]',
    ],
    ['an empty list', '', 'NoCommonVersion', 'no compatible version found, server: [], client: [1]'],
    ['bytes that are no message', 'ff', 'VersionCheckFailed', 'could not check cmd server version: '],
  ])('%s', async (_what, hex, code, message) => {
    await using _server = await serveBytes(socket.path, {}, Buffer.from(hex, 'hex'));
    const error = await failureOf(connectCmd(socket.path));
    expect(error.code).toBe(code);
    expect(error.message.startsWith(message)).toBe(true);
  });

  test('takes one version of several, packed or not', async () => {
    await using _server = await serveBytes(socket.path, {}, Buffer.from('080308010802', 'hex'));
    using client = await connectCmd(socket.path);
    expect(client.version).toBe(1);
  });

  test('a server without the info service is a failure to connect, not an old launcher', async () => {
    const server = createServer();
    server.on('stream', (stream: ServerHttp2Stream) => {
      const status = { 'grpc-status': '12', 'grpc-message': 'unknown service' };
      stream.respond({ ':status': 200, 'content-type': 'application/grpc', ...status }, { endStream: true });
    });
    await new Promise<void>((resolve) => server.listen(socket.path, resolve));
    const error = await failureOf(connectCmd(socket.path));
    server.close();
    expect(error.code).toBe('VersionCheckFailed');
    expect(error.message).toBe(
      'could not check cmd server version: rpc error: code = Unimplemented desc = unknown service',
    );
  });

  test('a common version that is not implemented is an error', () => {
    const choose = (): number => chooseVersion([1, 2], [1, 2], 'cmd');
    expect(choose).toThrow(
      expect.objectContaining({ code: 'VersionUnsupported', message: 'cmd client version 2 not implemented yet' }),
    );
  });
});

describe('the end of a connection', () => {
  test('a launcher that dies is noticed through its connection, once', async () => {
    const connections: { destroy(): void }[] = [];
    const server = await serveCmd(`${socket.path}-inner`, { ping: async () => undefined });
    await using _relay = await listenRaw(socket.path, (connection) => {
      connections.push(connection);
      const inner = connect(`${socket.path}-inner`);
      inner.on('error', () => undefined);
      connection.on('close', () => inner.destroy());
      connection.pipe(inner).pipe(connection);
    });
    using client = await connectCmd(socket.path);
    let losses = 0;
    using _subscription = client.onConnectionLost(() => losses++);
    expect((await client.ping()).ok).toBe(true);
    expect(losses).toBe(0);
    for (const connection of connections) connection.destroy();
    await until(() => losses > 0, 'the loss is noticed');
    // The channel dials again for the next call, and would tell about the end of that connection too.
    expect((await client.ping()).ok).toBe(true);
    expect(losses).toBe(1);
    await server.stop();
  });

  test('a call that is under way fails as a loss of connection', async () => {
    const server = await serveCmd(socket.path, { ping: () => new Promise<void>(() => undefined) });
    using client = await connectCmd(socket.path);
    const call = client.ping();
    await until(() => server.connectionCount > 0, 'connected');
    await server.stop(0);
    const result = await call;
    expect(!result.ok && isConnectionLoss(result.error)).toBe(true);
  });

  test('calls on a dead connection fail at once instead of waiting for their deadline', async () => {
    const server = await serveCmd(socket.path, { ping: async () => undefined });
    using client = await connectCmd(socket.path);
    await server.stop(0);
    const result = await client.ping({}, { timeoutMs: 600_000 });
    expect(!result.ok && isConnectionLoss(result.error)).toBe(true);
  });

  test('unsubscribing and closing keep a listener from being told', async () => {
    const server = await serveCmd(socket.path, {});
    const client = await connectCmd(socket.path);
    let told = 0;
    client.onConnectionLost(() => told++)[Symbol.dispose]();
    client.onConnectionLost(() => told++);
    client.close();
    await server.stop();
    await until(() => server.connectionCount === 0, 'the server has seen the end');
    expect(told).toBe(0);
  });
});

describe('FM-3.12 short-lived clients', () => {
  const openDescriptors = (): number => readdirSync('/proc/self/fd').length;

  test('leave no descriptor behind, whether they connect, fail or are cut off', async () => {
    await using server = await serveCmd(socket.path, { ping: async () => undefined });
    await using _liar = await listenRaw(`${socket.path}-liar`, (connection) => connection.destroy());
    const long = join(dirname(socket.path), 'd'.repeat(100), 'launcher-sock');
    await using _long = await serveCmd(long, {});
    (await connectCmd(socket.path)).close();
    await until(() => server.connectionCount === 0, 'the first one is forgotten');
    const before = openDescriptors();
    for (let i = 0; i < 100; i++) {
      using client = await connectCmd(socket.path);
      expect((await client.ping()).ok).toBe(true);
      (await connectCmd(long)).close();
      await failureOf(connectCmd(`${socket.path}-nobody`));
    }
    await failureOf(connectCmd(`${socket.path}-liar`, { dialTimeoutMs: 50 }));
    await until(() => openDescriptors() <= before, 'every descriptor is closed');
  });
});
