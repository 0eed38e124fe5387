import type { Duplex } from 'node:stream';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { connect } from './connection.ts';
import type { Connection } from './connection.ts';
import type { CopyDescriptors } from './descriptors.ts';
import type { LibvirtError } from './errors.ts';
import { startFakeDaemon } from './fake/index.ts';
import type { FakeDaemon } from './fake/index.ts';
import type { ConnectOptions } from './options.ts';
import { tinyDomainXml } from './testing/domain-xml.ts';

let daemon: FakeDaemon;
let connections: Connection[];
/** Copies that are not closed yet. */
let open: number;
/** Holds the bytes of descriptors back until it resolves. */
let gate: Promise<undefined>;

/** Stands for the kernel: what goes with a descriptor is one zero byte, which is all that the fake daemon reads. */
const copyDescriptors: CopyDescriptors = (descriptors) => {
  if (descriptors.includes(-1)) throw new Error('descriptor -1 is not open');
  let isOpen = true;
  open += descriptors.length;
  return {
    async send(stream: Duplex, signal: AbortSignal) {
      await gate;
      signal.throwIfAborted();
      for (let left = descriptors.length; left > 0; left--) {
        await new Promise((resolve) => stream.write(Buffer.alloc(1), resolve));
      }
    },
    [Symbol.dispose]: () => {
      if (isOpen) open -= descriptors.length;
      isOpen = false;
    },
  };
};

async function connectTo(changes: ConnectOptions = {}): Promise<Connection> {
  const options = { copyDescriptors, keepalive: false, reconnect: false, ...changes } as const;
  const connection = await connect({ openTransport: () => daemon.openTransport(), ...options });
  connections.push(connection);
  return connection;
}

const failure = (promise: Promise<unknown>): Promise<LibvirtError> =>
  promise.then(
    () => Promise.reject(new Error('it did not fail')),
    (error: unknown) => error as LibvirtError,
  );

const disk = (group: string): string =>
  `<disk type='file'><source file='/nowhere' fdgroup='${group}'/><target dev='vda'/></disk>`;

beforeEach(async () => {
  connections = [];
  open = 0;
  gate = Promise.resolve(undefined);
  daemon = await startFakeDaemon({ socketPath: null });
});

afterEach(async () => {
  for (const connection of connections) await connection.close();
  await daemon.close();
  expect(open).toBe(0);
});

test('a domain starts once it has the descriptors that its disk names', async () => {
  const connection = await connectTo();
  const domain = await connection.defineDomainXml(tinyDomainXml({ name: 'd', devices: disk('storage') }));
  expect(await failure(domain.create())).toMatchObject({
    code: 8,
    message: "invalid argument: file descriptor group 'storage' was not associated with the domain",
  });
  await domain.fdAssociate('storage', [3, 4]);
  expect(daemon.domain('d').descriptorGroups).toEqual(new Map([['storage', 2]]));
  await domain.create();
});

test('calls that are made while descriptors are on the way come after them, and in their order', async () => {
  const connection = await connectTo({ maxInFlight: 10 });
  const domain = await connection.defineDomainXml(tinyDomainXml({ name: 'd' }));
  const released = Promise.withResolvers<undefined>();
  gate = released.promise;
  const before = daemon.calls.length;
  const all = [
    connection.getType(),
    domain.fdAssociate('a', [3]),
    connection.getHostname(),
    domain.fdAssociate('b', [3, 4, 5]),
    domain.getState(),
  ];
  await all[0];
  expect(daemon.calls.slice(before).map(({ procedure }) => procedure)).toEqual(['CONNECT_GET_TYPE']);
  released.resolve(undefined);
  await Promise.all(all);
  expect(daemon.calls.slice(before).map(({ procedure }) => procedure)).toEqual([
    'CONNECT_GET_TYPE',
    'DOMAIN_FD_ASSOCIATE',
    'CONNECT_GET_HOSTNAME',
    'DOMAIN_FD_ASSOCIATE',
    'DOMAIN_GET_STATE',
  ]);
  expect([...daemon.domain('d').descriptorGroups]).toEqual([
    ['a', 1],
    ['b', 3],
  ]);
});

test('what a connection has passed goes with it', async () => {
  const connection = await connectTo();
  const domain = await connection.defineDomainXml(tinyDomainXml({ name: 'd' }));
  const other = await connectTo();
  await domain.fdAssociate('mine', [3]);
  await other.domain(domain.ref).fdAssociate('other', [3]);
  await other.close();
  await expect.poll(() => [...daemon.domain('d').descriptorGroups.keys()]).toEqual(['mine']);
});

test.each<[string, readonly number[], number, Partial<LibvirtError>]>([
  ['none', [], 0, { kind: 'Daemon', code: 8, message: 'nfds in virDomainFDAssociate must not be zero' }],
  [
    'more than 32',
    Array.from({ length: 33 }, () => 3),
    0,
    { kind: 'InvalidArgument', message: 'DOMAIN_FD_ASSOCIATE: 33 descriptors, limit 32' },
  ],
  [
    'one that is not open',
    [3, -1],
    0,
    { kind: 'InvalidArgument', message: 'DOMAIN_FD_ASSOCIATE: descriptor -1 is not open' },
  ],
  [
    'a flag that there is not',
    [3],
    64,
    { kind: 'Daemon', code: 8, message: 'unsupported flags (0x40) in function qemuDomainFDAssociate' },
  ],
])('refuses %s', async (_title, descriptors, flags, expected) => {
  const connection = await connectTo();
  const domain = await connection.defineDomainXml(tinyDomainXml({ name: 'd' }));
  const error = await failure(domain.fdAssociate('x', descriptors, flags));
  expect(error).toMatchObject(expected);
  expect(await connection.getType()).toBe('QEMU');
});

test('refuses calls that pass or return descriptors where nothing can do it', async () => {
  const without = await connect({ openTransport: () => daemon.openTransport() });
  connections.push(without);
  const dom = { name: 'x', uuid: '00000000-0000-0000-0000-000000000000', id: -1 };
  expect(await failure(without.domain(dom).fdAssociate('x', [3]))).toMatchObject({ kind: 'Unsupported', code: 3 });
  const connection = await connectTo();
  const returning = connection.call('DOMAIN_OPEN_GRAPHICS_FD', { dom, idx: 0, flags: 0 });
  expect(await failure(returning)).toMatchObject({ kind: 'Unsupported', code: 3 });
  const strange = connection.call('DOMAIN_GET_INFO', { dom }, { descriptors: [3] });
  expect(await failure(strange)).toMatchObject({ kind: 'InvalidArgument' });
});

test('a call that is given up before it is sent passes nothing', async () => {
  const connection = await connectTo({ maxInFlight: 1 });
  const domain = await connection.defineDomainXml(tinyDomainXml({ name: 'd' }));
  daemon.faults.add({ kind: 'slow', delayMs: 50 }, { procedure: 'CONNECT_GET_HOSTNAME' });
  const slow = connection.getHostname();
  const given = failure(domain.fdAssociate('x', [3], 0, { signal: AbortSignal.timeout(10) }));
  expect(await given).toMatchObject({ kind: 'Aborted' });
  expect(open).toBe(0);
  await slow;
  expect(daemon.callsOf('DOMAIN_FD_ASSOCIATE')).toEqual([]);
});

test('a call that is given up while it is sent does not put others out of step', async () => {
  const connection = await connectTo();
  const domain = await connection.defineDomainXml(tinyDomainXml({ name: 'd' }));
  const released = Promise.withResolvers<undefined>();
  gate = released.promise;
  const given = domain.fdAssociate('x', [3], 0, { signal: AbortSignal.timeout(10) });
  expect(await failure(given)).toMatchObject({ kind: 'Aborted' });
  released.resolve(undefined);
  expect(await connection.getType()).toBe('QEMU');
  expect(daemon.domain('d').descriptorGroups.get('x')).toBe(1);
});

test('descriptors that do not get out end the connection, as the daemon would wait for them for ever', async () => {
  const connection = await connectTo();
  const domain = await connection.defineDomainXml(tinyDomainXml({ name: 'd' }));
  gate = Promise.reject(new Error('nobody reads the descriptors'));
  gate.catch(() => undefined);
  const [call, other] = await Promise.all([failure(domain.fdAssociate('x', [3])), failure(connection.getType())]);
  const message = 'file descriptors could not be sent: nobody reads the descriptors';
  expect([call, other]).toMatchObject([
    { kind: 'ConnectionLost', message, procedure: 'DOMAIN_FD_ASSOCIATE' },
    { kind: 'ConnectionLost', message, procedure: 'CONNECT_GET_TYPE' },
  ]);
});

test('a daemon that dies while descriptors are on the way leaves none open', async () => {
  const connection = await connectTo();
  const domain = await connection.defineDomainXml(tinyDomainXml({ name: 'd' }));
  const released = Promise.withResolvers<undefined>();
  gate = released.promise;
  const calls = [failure(domain.fdAssociate('x', [3])), failure(domain.fdAssociate('y', [4, 5]))];
  await expect.poll(() => open).toBe(3);
  await daemon.crash();
  for (const error of await Promise.all(calls)) expect(error).toMatchObject({ kind: 'ConnectionLost' });
  released.resolve(undefined);
  await expect.poll(() => open).toBe(0);
});
