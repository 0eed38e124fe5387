import { connect } from 'node:net';

import { Client, credentials, Metadata } from '@grpc/grpc-js';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';

import { readRecordedMessages } from '../testing/bundle.ts';
import { listenRaw, tempSocket, type TempSocket, until } from '../testing/sockets.ts';
import type { NotifyHandlers, NotifyServer, PeerIdentity } from './api.ts';
import { connectNotify } from './client.ts';
import { serveNotify } from './server.ts';

let socket: TempSocket;
beforeEach(() => {
  socket = tempSocket();
});
afterEach(() => socket[Symbol.dispose]());

const NOBODY: NotifyHandlers = { handleDomainEvent: async () => undefined, handleK8sEvent: async () => undefined };
const VM1: PeerIdentity = { namespace: 'default', name: 'vm1', uid: '5e1f0a00-0000-4000-8000-00000000c001' };

/** Takes events of the connection's own VMI alone, as a handler has to. */
function ownEventsOnly(taken: string[]): NotifyHandlers {
  return {
    ...NOBODY,
    handleDomainEvent: async ({ domainJSON }, { identity }) => {
      const { name } = JSON.parse(Buffer.from(domainJSON).toString()) as { name: string };
      if (identity?.name !== name)
        throw new Error(`this pipe belongs to ${identity?.name ?? 'nobody'}, not to ${name}`);
      taken.push(name);
    },
  };
}

/** Puts a listening socket in front of an entrance, as the notify pipe is. */
const openPipe = (path: string, server: NotifyServer, identity: PeerIdentity): Promise<AsyncDisposable> => {
  const entrance = server.openEntrance(identity);
  return listenRaw(path, (connection) => entrance.accept(connection));
};

const event = (name: string): { domainJSON: Buffer; eventType: string } => ({
  domainJSON: Buffer.from(JSON.stringify({ name })),
  eventType: 'MODIFIED',
});

describe('a launcher and its handler', () => {
  test('agree on a version and pass events on', async () => {
    const seen: string[] = [];
    await using _server = await serveNotify(socket.path, {
      handleDomainEvent: async ({ eventType, statusJSON }) => void seen.push(`${eventType} ${statusJSON.length}`),
      handleK8sEvent: async ({ eventJSON }) => void seen.push(Buffer.from(eventJSON).toString()),
    });
    using client = await connectNotify(socket.path);
    expect(client.version).toBe(1);
    expect((await client.handleDomainEvent({ eventType: 'ERROR', statusJSON: Buffer.from('{}') })).ok).toBe(true);
    expect((await client.handleK8sEvent({ eventJSON: Buffer.from('{"reason":"IOerror"}') })).ok).toBe(true);
    expect(seen).toEqual(['ERROR 2', '{"reason":"IOerror"}']);
  });

  test('FM-1.4 what a handler throws is an answer, never a gRPC error', async () => {
    await using _server = await serveNotify(socket.path, {
      handleDomainEvent: async () => {
        throw new Error('unexpected end of JSON input');
      },
      handleK8sEvent: () => {
        throw new Error('');
      },
    });
    using client = await connectNotify(socket.path);
    const domain = await client.handleDomainEvent({});
    expect(!domain.ok && domain.error.message).toBe('failed to notify domain event: unexpected end of JSON input');
    expect(domain).toMatchObject({ answer: { success: false, message: 'unexpected end of JSON input' } });
    const k8s = await client.handleK8sEvent({});
    expect(k8s).toMatchObject({ answer: { success: false, message: 'unknown error' } });
  });

  test('an unknown RPC, an unknown service and bytes that are no message answer as v1.9.0 does', async () => {
    await using _server = await serveNotify(socket.path, NOBODY);
    const client = new Client(`unix:${socket.path}`, credentials.createInsecure());
    const wanted = readRecordedMessages().filter((m) => m.scenario === 'notify-server' && m.grpcStatus.code !== 0);
    expect(wanted).toHaveLength(3);
    for (const { method, request, grpcStatus } of wanted) {
      const asIs = (bytes: Buffer): Buffer => bytes;
      const code = await new Promise((resolve) => {
        const body = Buffer.from(request.base64, 'base64');
        client.makeUnaryRequest(method, asIs, asIs, body, new Metadata(), {}, (error) => resolve(error?.code));
      });
      expect(code).toBe(grpcStatus.code);
    }
    client.close();
  });
});

describe('FM-13.4 identity', () => {
  test('comes from the pipe that a connection came through, and lies are refused', async () => {
    const taken: string[] = [];
    await using server = await serveNotify(socket.path, ownEventsOnly(taken));
    await using _one = await openPipe(`${socket.path}-1`, server, VM1);
    await using _two = await openPipe(`${socket.path}-2`, server, { ...VM1, name: 'vm2' });
    using first = await connectNotify(`${socket.path}-1`);
    using second = await connectNotify(`${socket.path}-2`);
    using direct = await connectNotify(socket.path);
    expect((await first.handleDomainEvent(event('vm1'))).ok).toBe(true);
    expect((await second.handleDomainEvent(event('vm2'))).ok).toBe(true);
    expect(await first.handleDomainEvent(event('vm2'))).toMatchObject({
      ok: false,
      answer: { success: false, message: 'this pipe belongs to vm1, not to vm2' },
    });
    expect((await direct.handleDomainEvent(event('vm1'))).ok).toBe(false);
    expect(taken).toEqual(['vm1', 'vm2']);
  });

  test('closing an entrance ends its connections and leaves the others', async () => {
    await using server = await serveNotify(socket.path, NOBODY);
    const one = server.openEntrance(VM1);
    const two = server.openEntrance({ ...VM1, name: 'vm2' });
    await using _one = await listenRaw(`${socket.path}-1`, (connection) => one.accept(connection));
    await using _two = await listenRaw(`${socket.path}-2`, (connection) => two.accept(connection));
    using first = await connectNotify(`${socket.path}-1`);
    using second = await connectNotify(`${socket.path}-2`);
    let lost = false;
    first.onConnectionLost(() => (lost = true));
    one[Symbol.dispose]();
    await until(() => lost, 'the first connection has ended');
    expect((await second.handleDomainEvent({})).ok).toBe(true);
    expect(server.connectionCount).toBe(1);
  });
});

describe('FM-13.7 limits of a pipe', () => {
  test('64 connections at most; a breach closes the new one only', async () => {
    const faults: string[] = [];
    await using server = await serveNotify(socket.path, NOBODY, { onFault: (error) => faults.push(error.message) });
    const entrance = server.openEntrance(VM1);
    await using _pipe = await listenRaw(`${socket.path}-1`, (connection) => entrance.accept(connection));
    using client = await connectNotify(`${socket.path}-1`);
    const others = Array.from({ length: 70 }, () => connect(`${socket.path}-1`).on('error', () => undefined));
    await until(() => faults.length === 7, 'seven are refused');
    expect(entrance.connectionCount).toBe(64);
    expect((await client.handleDomainEvent({})).ok).toBe(true);
    for (const other of others) other.destroy();
    await until(() => entrance.connectionCount === 1, 'the others are forgotten');
  });
});

describe('stopping', () => {
  test('ends the connections of every entrance and takes no new ones', async () => {
    const server = await serveNotify(socket.path, NOBODY);
    const entrance = server.openEntrance(VM1);
    await using _pipe = await listenRaw(`${socket.path}-1`, (connection) => entrance.accept(connection));
    using _client = await connectNotify(`${socket.path}-1`);
    await server.stop(1_000);
    expect(entrance.connectionCount).toBe(0);
    await expect(connectNotify(`${socket.path}-1`, { dialTimeoutMs: 200 })).rejects.toMatchObject({
      code: 'DialFailed',
    });
  });
});
