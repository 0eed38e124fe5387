import { afterEach, beforeEach, expect, test } from 'vitest';
import { connect } from './connection.ts';
import type { Connection } from './connection.ts';
import { DOMAIN_EVENTS } from './domain-events.ts';
import type { DomainEventKind } from './domain-events.ts';
import { startFakeDaemon } from './fake/index.ts';
import type { FakeDaemon, FakeDomain } from './fake/index.ts';

const XML = "<domain type='qemu'><name>a</name><os><type>hvm</type></os></domain>";
let daemon: FakeDaemon;
let connection: Connection;
let domain: FakeDomain;

beforeEach(async () => {
  daemon = await startFakeDaemon({ socketPath: null });
  connection = await connect({ openTransport: () => daemon.openTransport() });
  domain = daemon.hypervisor.define(XML);
});

afterEach(async () => {
  await connection.close();
  await daemon.close();
});

const FIELDS: Readonly<Record<DomainEventKind, Readonly<Record<string, unknown>>>> = {
  lifecycle: { event: 2, detail: 0 },
  reboot: {},
  rtcChange: { offset: -3_600n },
  watchdog: { action: 3 },
  ioError: { srcPath: '/d', devAlias: 'virtio-disk0', action: 1 },
  graphics: {
    phase: 0,
    local: { family: 0, node: '127.0.0.1', service: '5900' },
    remote: { family: 0, node: '127.0.0.1', service: '40000' },
    authScheme: 'none',
    subject: [],
  },
  ioErrorReason: { srcPath: '/d', devAlias: 'virtio-disk0', action: 1, reason: 'enospc' },
  controlError: {},
  blockJob: { path: '/d', type: 5, status: 0 },
  diskChange: { oldSrcPath: '/d', newSrcPath: null, devAlias: 'ide0', reason: 0 },
  trayChange: { devAlias: 'ide0', reason: 1 },
  pmWakeup: { reason: 0 },
  pmSuspend: { reason: 0 },
  balloonChange: { actual: 65_536n },
  pmSuspendDisk: { reason: 0 },
  deviceRemoved: { devAlias: 'net1' },
  blockJob2: { dst: 'vda', type: 5, status: 3 },
  tunable: { params: [{ field: 'cputune.cpu_shares', type: 'ullong', value: 1_024n }] },
  agentLifecycle: { state: 1, reason: 2 },
  deviceAdded: { devAlias: 'net1' },
  migrationIteration: { iteration: 3 },
  jobCompleted: { params: [{ field: 'operation', type: 'int', value: 9 }] },
  deviceRemovalFailed: { devAlias: 'net1' },
  metadataChange: { type: 2, nsuri: 'urn:x' },
  blockThreshold: { dev: 'vda', path: null, threshold: 10n, excess: 1n },
  memoryFailure: { recipient: 1, action: 2, flags: 1 },
  memoryDeviceSizeChange: { alias: 'virtiomem0', size: 1n << 40n },
  nicMacChange: { alias: 'net0', oldMAC: '52:54:00:00:00:01', newMAC: '52:54:00:00:00:02' },
};

test.each(Object.keys(DOMAIN_EVENTS) as DomainEventKind[])(
  'delivers %s with its fields and the domain as a handle',
  async (kind) => {
    const seen: unknown[] = [];
    await connection.onDomainEvent(kind, (event) => {
      const { domain: handle, ...fields } = event as {
        readonly domain: { readonly name: string; readonly uuid: string };
      };
      seen.push([handle.name, handle.uuid, fields]);
    });
    domain.host.emit(kind, domain, FIELDS[kind]);
    await connection.getType();
    expect(seen).toEqual([['a', domain.uuid, { kind, ...FIELDS[kind] }]]);
  },
);

test('delivers events that overtake the reply to their registration', async () => {
  const seen: number[] = [];
  daemon.faults.add({ kind: 'slow', delayMs: 500 }, { procedure: 'CONNECT_DOMAIN_EVENT_CALLBACK_REGISTER_ANY' });
  const registering = connection.onDomainEvent('lifecycle', (event) => seen.push(event.event));
  // The daemon has registered, and its reply is still to come.
  const isRegistered = (): boolean => daemon.callsOf('CONNECT_DOMAIN_EVENT_CALLBACK_REGISTER_ANY').length === 1;
  while (!isRegistered()) await new Promise((resolve) => setImmediate(resolve));
  domain.start(false);
  await registering;
  expect(seen).toEqual([4, 2]);
});

test('delivers the events that stand right behind the reply in the same chunk', async () => {
  const seen: number[] = [];
  const registering = connection.onDomainEvent('lifecycle', (event) => seen.push(event.event));
  const starting = connection.call('DOMAIN_CREATE', { dom: domain.ref });
  await Promise.all([registering, starting]);
  expect(seen).toEqual([4, 2]);
});

test('goes on when a listener throws, and hands its error to the process', async () => {
  const thrown: unknown[] = [];
  const listeners = process.listeners('uncaughtException');
  process.removeAllListeners('uncaughtException');
  process.on('uncaughtException', (error) => thrown.push(error));
  try {
    const seen: number[] = [];
    await connection.onDomainEvent('lifecycle', () => {
      throw new Error('a bug in the listener');
    });
    await connection.onDomainEvent('lifecycle', (event) => seen.push(event.event));
    domain.start(false);
    await expect.poll(() => seen).toEqual([4, 2]);
    await expect.poll(() => thrown).toHaveLength(2);
    expect(await connection.getType()).toBe('QEMU');
  } finally {
    process.removeAllListeners('uncaughtException');
    for (const listener of listeners) process.on('uncaughtException', listener);
  }
});

test('answers the pings of the daemon', async () => {
  const transport = daemon.openTransport();
  let pongs = 0;
  const write = transport.write.bind(transport);
  transport.write = ((chunk: Buffer, ...rest: [() => void]) => {
    if (chunk.readUInt32BE(4) === 0x6b65_6570 && chunk.readUInt32BE(12) === 2) pongs++;
    return write(chunk, ...rest);
  }) as typeof transport.write;
  await using second = await connect({ openTransport: () => transport, reconnect: false });
  daemon.pingClients();
  await expect.poll(() => pongs).toBe(1);
  expect(await second.getType()).toBe('QEMU');
});

test('takes a hypervisor connection that the daemon has lost for a lost connection', async () => {
  const header = [32, 0x2000_8086, 1, 362, 2, 1, 0, 1];
  const message = Buffer.alloc(32);
  header.forEach((word, i) => message.writeUInt32BE(word, i * 4));
  await using second = await connect({ openTransport: () => daemon.openTransport(), reconnect: false });
  daemon.faults.add({ kind: 'bytes', bytes: message }, { procedure: 'CONNECT_GET_HOSTNAME' });
  await expect(second.getHostname()).rejects.toMatchObject({
    kind: 'ConnectionLost',
    message: 'the daemon lost its own connection to the hypervisor, reason 1',
  });
});
