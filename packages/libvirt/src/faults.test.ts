import type { Duplex } from 'node:stream';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { connect } from './connection.ts';
import type { Connection, ConnectionEvent } from './connection.ts';
import type { LibvirtError } from './errors.ts';
import { startFakeDaemon } from './fake/index.ts';
import type { FakeDaemon, FaultAction } from './fake/index.ts';
import type { ConnectOptions } from './options.ts';

let daemon: FakeDaemon;
const connections: Connection[] = [];

beforeEach(async () => {
  daemon = await startFakeDaemon({ socketPath: null });
});

afterEach(async () => {
  for (const connection of connections.splice(0)) await connection.close();
  await daemon.close();
});

async function open(options: ConnectOptions = {}): Promise<Connection> {
  const connection = await connect({ openTransport: () => daemon.openTransport(), reconnect: false, ...options });
  connections.push(connection);
  return connection;
}

function failure(call: Promise<unknown>): Promise<LibvirtError> {
  return call.then(
    (value) => {
      throw new Error(`no error but ${String(value)}`);
    },
    (error: unknown) => error as LibvirtError,
  );
}

describe('a fault in the reply ends in a clear error and no hang', () => {
  test.each<[string, FaultAction, string, RegExp]>([
    ['a cut', { kind: 'cut' }, 'ConnectionLost', /^End of file while reading data: Input\/output error$/],
    [
      'half a packet',
      { kind: 'halfPacket' },
      'ConnectionLost',
      /^End of file while reading data in the middle of a packet: /,
    ],
    ['a giant length', { kind: 'giantLength' }, 'Protocol', /^packet length 2147483647 is outside 28 to 33554436: /],
    ['a wrong serial', { kind: 'wrongSerial' }, 'Protocol', /^reply with serial \d+, which no pending call has$/],
    [
      'garbage',
      { kind: 'bytes', bytes: Buffer.from('HTTP/1.1 400 Bad Request\r\n\r\n') },
      'Protocol',
      /not a libvirt daemon/,
    ],
    ['an error', { kind: 'error', code: 38, message: 'no disk' }, 'Daemon', /^no disk$/],
  ])('%s', async (_title, fault, kind, message) => {
    const connection = await open();
    daemon.faults.add(fault, { procedure: 'CONNECT_GET_HOSTNAME' });
    const bystander = failure(connection.getType()).then(
      (error) => error.kind,
      () => 'QEMU',
    );
    const error = await failure(connection.getHostname());
    expect(error.kind).toBe(kind);
    expect(error.message).toMatch(message);
    expect(error.procedure).toBe('CONNECT_GET_HOSTNAME');
    expect(['QEMU', kind]).toContain(await bystander);
    expect(connection.state).toBe(kind === 'Daemon' ? 'open' : 'closed');
  });

  test('half a packet and then silence: the pings notice', async () => {
    const connection = await open({ keepalive: { intervalMs: 20, count: 2 } });
    daemon.faults.add({ kind: 'halfPacket', then: 'silence' }, { procedure: 'CONNECT_GET_HOSTNAME' });
    const call = failure(connection.getHostname());
    daemon.pause();
    expect(await call).toMatchObject({ kind: 'ConnectionLost', message: 'connection closed due to keepalive timeout' });
  });

  test('no reply at all: the deadline ends the call, and the connection goes on', async () => {
    const connection = await open({ callTimeoutMs: 30 });
    daemon.faults.add({ kind: 'silent' }, { procedure: 'CONNECT_GET_HOSTNAME' });
    expect(await failure(connection.getHostname())).toMatchObject({ kind: 'Timeout' });
    expect(await connection.getType()).toBe('QEMU');
  });

  test('a slow reply comes after the deadline and is dropped', async () => {
    const connection = await open({ maxInFlight: 1 });
    daemon.faults.add({ kind: 'slow', delayMs: 60 }, { procedure: 'CONNECT_GET_HOSTNAME' });
    expect(await failure(connection.getHostname({ timeoutMs: 20 }))).toMatchObject({ kind: 'Timeout' });
    // The slot is taken until the late reply is there.
    expect(await connection.getType()).toBe('QEMU');
  });

  test('a killed daemon fails every call that is pending or queued', async () => {
    const connection = await open({ maxInFlight: 2 });
    daemon.pause();
    const calls = Array.from({ length: 10 }, () => failure(connection.getHostname()));
    await daemon.crash();
    for (const error of await Promise.all(calls))
      expect(error).toMatchObject({ kind: 'ConnectionLost', code: 38, domain: 7 });
  });

  test('a reply to another procedure than was called', async () => {
    const connection = await open();
    const reply = Buffer.alloc(28);
    [28, 0x2000_8086, 1, 2, 1, 7, 0].forEach((word, i) => reply.writeUInt32BE(word, i * 4));
    daemon.faults.add({ kind: 'bytes', bytes: reply }, { procedure: 'CONNECT_GET_HOSTNAME' });
    const error = await failure(connection.getHostname());
    expect(error.kind).toBe('Protocol');
    expect(error.message).toMatch(/^reply of procedure 2 to serial 7, which is a CONNECT_GET_HOSTNAME$/);
  });

  test('a reply whose payload does not decode', async () => {
    const connection = await open();
    const reply = Buffer.alloc(32);
    [32, 0x2000_8086, 1, 59, 1, 7, 0, 0x00ff_ffff].forEach((word, i) => reply.writeUInt32BE(word, i * 4));
    daemon.faults.add({ kind: 'bytes', bytes: reply }, { procedure: 'CONNECT_GET_HOSTNAME' });
    const error = await failure(connection.getHostname());
    expect(error).toMatchObject({ kind: 'Protocol', procedure: 'CONNECT_GET_HOSTNAME' });
    expect(error.message).toMatch(/malformed XDR/);
  });
});

describe('opening', () => {
  test('fails with the cause when the daemon refuses', async () => {
    daemon.refuse(true);
    const error = await failure(open());
    expect(error.kind).toBe('ConnectFailed');
    expect(error.message).toMatch(/the daemon closed the connection/);
  });

  /** The daemon’s answer which authentication it wants. */
  function wantsAuthentication(type: number): void {
    const reply = Buffer.alloc(36);
    [36, 0x2000_8086, 1, 66, 1, 1, 0, 1, type].forEach((word, i) => reply.writeUInt32BE(word, i * 4));
    daemon.faults.add({ kind: 'bytes', bytes: reply }, { procedure: 'AUTH_LIST' });
  }

  test('asks for polkit’s word when the daemon wants that', async () => {
    wantsAuthentication(2);
    await open();
    expect(daemon.calls.slice(0, 3).map((call) => call.procedure)).toEqual([
      'AUTH_LIST',
      'AUTH_POLKIT',
      'CONNECT_SUPPORTS_FEATURE',
    ]);
  });

  test('makes the calls of the C library in its order', async () => {
    const connection = await open();
    await connection.close();
    expect(daemon.calls).toEqual([
      { procedure: 'AUTH_LIST', args: undefined },
      { procedure: 'CONNECT_SUPPORTS_FEATURE', args: { feature: 10 } },
      { procedure: 'CONNECT_OPEN', args: { name: 'qemu:///system', flags: 0 } },
      { procedure: 'CONNECT_SUPPORTS_FEATURE', args: { feature: 14 } },
      { procedure: 'CONNECT_SUPPORTS_FEATURE', args: { feature: 15 } },
      { procedure: 'CONNECT_REGISTER_CLOSE_CALLBACK', args: undefined },
      { procedure: 'CONNECT_CLOSE', args: undefined },
    ]);
  });

  test('fails when the daemon wants SASL', async () => {
    wantsAuthentication(1);
    const error = await failure(open());
    expect(error).toMatchObject({ kind: 'AuthFailed', code: 45 });
    await expect.poll(() => daemon.clients).toBe(0);
  });

  test('gives the daemon’s error when it does not serve the URI, and leaves no connection', async () => {
    const error = await failure(open({ uri: 'qemu:///session' }));
    expect(error).toMatchObject({ kind: 'Daemon', code: 1 });
    expect(error.message).toContain("unexpected driver URI path 'qemu:///session'");
    await expect.poll(() => daemon.clients).toBe(0);
  });

  test('does not wait for a transport that never comes, and destroys one that comes too late', async () => {
    let arrive: (stream: Duplex) => void = () => undefined;
    const openTransport = (): Promise<Duplex> => new Promise((resolve) => (arrive = resolve));
    const error = await failure(open({ openTransport, openTimeoutMs: 20 }));
    expect(error).toMatchObject({ kind: 'ConnectFailed' });
    expect(error.message).toMatch(/the given transport did not finish opening .* within 20 ms/);
    const late = daemon.openTransport();
    arrive(late);
    await expect.poll(() => late.destroyed).toBe(true);
  });

  test('gives the error of a transport that cannot be made', async () => {
    const openTransport = (): Promise<Duplex> => Promise.reject(new Error('no tunnel'));
    expect(await failure(open({ openTransport }))).toMatchObject({
      kind: 'ConnectFailed',
      message: 'open a transport: no tunnel',
    });
  });

  test('is given up when its signal is aborted', async () => {
    daemon.pause();
    const controller = new AbortController();
    const opening = failure(open({ signal: controller.signal }));
    controller.abort(new Error('enough'));
    expect(await opening).toMatchObject({ kind: 'Aborted', message: 'opening the connection was aborted' });
  });

  test.each(['AUTH_LIST', 'CONNECT_SUPPORTS_FEATURE', 'CONNECT_OPEN', 'CONNECT_REGISTER_CLOSE_CALLBACK'] as const)(
    'survives a cut at %s by trying again while it waits for the daemon',
    async (procedure) => {
      daemon.faults.add({ kind: 'cut' }, { procedure, times: 2 });
      const connection = await open({ waitForDaemonMs: 30_000 });
      expect(await connection.getType()).toBe('QEMU');
      expect(daemon.callsOf('AUTH_LIST')).toHaveLength(3);
    },
  );

  test('is made only once per socket', async () => {
    const connection = await open();
    expect(await failure(connection.call('CONNECT_OPEN', { name: daemon.uri, flags: 0 }))).toMatchObject({ code: 1 });
  });
});

test('has at most four calls in flight, and sends the next when one is answered', async () => {
  const connection = await open();
  daemon.faults.add({ kind: 'silent' }, { procedure: 'CONNECT_GET_HOSTNAME', times: 3 });
  daemon.faults.add({ kind: 'slow', delayMs: 50 }, { procedure: 'CONNECT_GET_HOSTNAME', times: 1 });
  const calls = Array.from({ length: 5 }, () => connection.getHostname({ timeoutMs: 5_000 }).catch(() => 'failed'));
  const behind = connection.getType();
  await expect.poll(() => daemon.callsOf('CONNECT_GET_HOSTNAME')).toHaveLength(4);
  expect(daemon.callsOf('CONNECT_GET_TYPE')).toHaveLength(0);
  // One slot is left for all that follow: the silent ones keep theirs.
  expect(await behind).toBe('QEMU');
  expect(await calls[4]).toBe('fake');
  await connection.close();
  expect(await Promise.all(calls)).toEqual(['failed', 'failed', 'failed', 'fake', 'fake']);
});

describe('restoring', () => {
  test('is all or nothing: a failed registration gives the socket up and tries again (FM-2.6)', async () => {
    const connection = await open({ reconnect: { initialDelayMs: 5, maxDelayMs: 10 } });
    daemon.hypervisor.define("<domain type='qemu'><name>a</name><os><type>hvm</type></os></domain>");
    const seen: string[] = [];
    await connection.onDomainEvent('lifecycle', (event) => seen.push(`lifecycle ${String(event.event)}`));
    await connection.onDomainEvent('metadataChange', (event) => seen.push(`metadata ${String(event.type)}`));
    await connection.onMonitorEvent((event) => seen.push(event.event));
    const happened: ConnectionEvent[] = [];
    connection.onConnectionEvent((event) => happened.push(event));
    const register = { procedure: 'CONNECT_DOMAIN_EVENT_CALLBACK_REGISTER_ANY', after: 1 } as const;
    daemon.faults.add({ kind: 'error', code: 1, message: 'not now' }, register);
    daemon.disconnectClients();
    await expect.poll(() => happened.map((event) => event.kind), { timeout: 30_000 }).toEqual(['lost', 'reconnected']);
    expect(connection.state).toBe('open');
    expect(happened[1]).toMatchObject({ attempts: 2 });
    expect(daemon.clients).toBe(1);
    await (await connection.lookupDomainByName('a')).create();
    await (await connection.lookupDomainByName('a')).setMetadata({ type: 1, text: 't' });
    await expect.poll(() => seen).toEqual(['RESUME', 'lifecycle 4', 'lifecycle 2', 'metadata 1']);
  });

  test('does not register again what was closed meanwhile', async () => {
    const connection = await open({ reconnect: { initialDelayMs: 5, maxDelayMs: 10 } });
    const subscription = await connection.onDomainEvent('lifecycle', () => undefined);
    await daemon.crash();
    await expect.poll(() => connection.state).toBe('reconnecting');
    await subscription.close();
    await daemon.start();
    await expect.poll(() => connection.state, { timeout: 30_000 }).toBe('open');
    expect(daemon.callsOf('CONNECT_DOMAIN_EVENT_CALLBACK_REGISTER_ANY')).toHaveLength(1);
  });

  test('goes through a hundred losses without leaving a client behind', async () => {
    const connection = await open({ reconnect: { initialDelayMs: 1, maxDelayMs: 1 } });
    await connection.onDomainEvent('lifecycle', () => undefined);
    let restored = 0;
    connection.onConnectionEvent((event) => {
      if (event.kind === 'reconnected') restored++;
    });
    for (let i = 1; i <= 100; i++) {
      daemon.disconnectClients();
      await expect.poll(() => restored, { timeout: 30_000, interval: 1 }).toBe(i);
    }
    expect(daemon.clients).toBe(1);
    expect(await connection.getType()).toBe('QEMU');
  });
});
