import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { serveNotify } from '@virtwire/shared-proto';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';

import { RELEASE_LINES, type ReleaseLine } from '../../release-line.ts';
import type { EmulatedLauncher, EmulatedLauncherOptions } from '../api.ts';
import { factsOf } from '../lines/lines.ts';
import { type Fields, openReleaseSchema } from '../schema/release-schema.ts';
import { dialGrpc, knock, type RawAnswer } from '../transport/grpc-client.ts';
import { startEmulatedLauncher } from './launcher.ts';

const VMI = {
  metadata: { namespace: 'default', name: 'vm1', uid: 'uid-1' },
  spec: {
    domain: {
      cpu: { sockets: 1, cores: 1, threads: 1, maxSockets: 2 },
      devices: { disks: [{ name: 'root', disk: { bus: 'virtio' } }], interfaces: [{ name: 'default', bridge: {} }] },
    },
    volumes: [{ name: 'root', emptyDisk: { capacity: '64Mi' } }],
  },
  status: { phase: 'Scheduled' } as Record<string, unknown>,
};

let dir: string;
let stack: AsyncDisposableStack;
let received: { readonly type: string; readonly domain: string; readonly status: string }[];
let k8sReasons: string[];

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'compat-'));
  stack = new AsyncDisposableStack();
  stack.defer(() => rmSync(dir, { recursive: true, force: true }));
  received = [];
  k8sReasons = [];
});
afterEach(async () => stack.disposeAsync());

async function start(line: ReleaseLine, more: Partial<EmulatedLauncherOptions> = {}): Promise<EmulatedLauncher> {
  const vmi = { namespace: 'default', name: 'vm1', uid: 'uid-1' };
  const sockets = { socketsDir: join(dir, 'sockets'), shareDir: join(dir, 'share') };
  return stack.use(await startEmulatedLauncher({ line, vmi, ...sockets, ...more }));
}

async function serve(name = 'domain-notify-pipe.sock'): Promise<void> {
  const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString('utf8');
  stack.use(
    await serveNotify(join(dir, 'share', name), {
      handleDomainEvent: async ({ eventType, domainJSON, statusJSON }) => {
        received.push({ type: eventType, domain: text(domainJSON), status: text(statusJSON) });
      },
      handleK8sEvent: async ({ eventJSON }) => {
        k8sReasons.push((JSON.parse(text(eventJSON)) as { reason: string }).reason);
      },
    }),
  );
}

async function call(launcher: EmulatedLauncher, rpc: string, request: Fields): Promise<RawAnswer> {
  using connection = await dialGrpc(launcher.cmdSocket, { authority: 'localhost', userAgent: 'test' });
  const found = openReleaseSchema('v1.9.0').cmdRpcs.get(rpc);
  if (found === undefined) throw new Error(`no RPC ${rpc}`);
  return await connection.call(found.path, found.encodeRequest(request), 5_000);
}

const withVmi = (change: object = {}): Fields => ({
  vmi: { vmiJson: JSON.stringify({ ...VMI, ...change }) },
  options: {},
});

function linesFrom(first: ReleaseLine): readonly ReleaseLine[] {
  return RELEASE_LINES.slice(RELEASE_LINES.indexOf(first));
}

const MIGRATING = { status: { migrationState: { migrationUid: 'm-1' } } };

describe.each<[what: string, since: ReleaseLine, rpc: string, request: Fields]>([
  ['a request without vmi', 'v0.59', 'PauseVirtualMachine', { options: {} }],
  ['Finalize without options', 'v1.2', 'FinalizeVirtualMachineMigration', { vmi: withVmi()['vmi'] }],
  ['Migrate with options null', 'v0.59', 'MigrateVirtualMachine', { ...withVmi(MIGRATING), options: 'null' }],
  ['Exec without a timeout', 'v0.59', 'Exec', { domainName: 'default_vm1', Command: 'ls' }],
  ['memory without a maximum', 'v1.1', 'SyncVirtualMachineMemory', withVmi()],
  [
    'Backup with options null',
    'v1.8',
    'BackupVirtualMachine',
    { ...withVmi({ status: { changedBlockTracking: { state: 'Enabled' } } }), options: 'null' },
  ],
])('%s', (_what, since, rpc, request) => {
  test.each(RELEASE_LINES)('ends a launcher of %s only if it is young enough', async (line) => {
    await serve();
    const launcher = await start(line, { lifeCycle: { agentMs: 0 } });
    await call(launcher, 'SyncVirtualMachine', withVmi());
    await launcher.waitFor('the agent', ({ state }) => state.isAgentConnected);
    const { code } = await call(launcher, rpc, request);
    const dies = linesFrom(since).includes(line);
    expect(launcher.state.process).toBe(dies ? 'crashed' : 'running');
    if (dies) expect(code).toBe(14);
    // The socket file stays, and nobody listens.
    expect(await knock(launcher.cmdSocket)).toBe(!dies);
  });
});

test.each(RELEASE_LINES)(
  'a launcher of %s defines a domain with placeholder interfaces, and starts it without',
  async (line) => {
    await serve();
    const launcher = await start(line);
    await call(launcher, 'SyncVirtualMachine', withVmi());
    await launcher.waitFor('the events', ({ events }) => events.filter(({ outcome }) => outcome === 'sent').length > 2);
    interface Nics {
      Spec: { Devices: { Interfaces: readonly { Alias: unknown }[] } };
    }
    const aliases = received
      .slice(0, 2)
      .map(({ domain }) => (JSON.parse(domain) as Nics).Spec.Devices.Interfaces.map(({ Alias }) => Alias !== null));
    const placeholders = line === 'v0.59' ? [] : [false, false, false];
    expect(aliases).toEqual([[true, ...placeholders], [true]]);
  },
);

test.each(RELEASE_LINES)('a launcher of %s tells of a libvirt that came back as its release does', async (line) => {
  await serve();
  const launcher = await start(line);
  await call(launcher, 'SyncVirtualMachine', withVmi());
  const before = launcher.events.length;
  launcher.reconnectLibvirt();
  await launcher.waitFor('the event', ({ events }) => events.at(before)?.outcome === 'sent');
  const { type, status } = received.at(-1) ?? {};
  expect(type).toBe(line === 'v1.9' ? 'MODIFIED' : 'ERROR');
  expect(status).toBe(
    line === 'v1.9' ? '' : '{"metadata":{},"status":"Failure","message":"Libvirt reconnect, domain default_vm1"}',
  );
});

test.each(RELEASE_LINES)('a launcher of %s sends the Kubernetes events that its release knows', async (line) => {
  await serve();
  const launcher = await start(line);
  await call(launcher, 'SyncVirtualMachine', withVmi());
  launcher.failDisk();
  launcher.panicGuest();
  await call(launcher, 'GuestPing', { domainName: 'default_vm1', timeoutSeconds: 1 });
  await launcher.waitFor('all events', ({ events }) => events.every(({ outcome }) => outcome === 'sent'));
  expect(k8sReasons).toEqual(factsOf(line).launcher.k8sEvents.value);
});

test.each<[ReleaseLine, boolean]>([
  ['v1.7', true],
  ['v1.8', false],
])('a launcher of %s uses a legacy notify socket in its pod: %s', async (line, uses) => {
  await serve('domain-notify.sock');
  const launcher = await start(line);
  await call(launcher, 'SyncVirtualMachine', withVmi());
  if (uses) await launcher.waitFor('the event', ({ events }) => events[0]?.outcome === 'sent');
  else await launcher.waitFor('a second try', ({ events }) => (events[0]?.attempts ?? 0) > 1);
  expect(received.length > 0).toBe(uses);
});

test.each(RELEASE_LINES)('a target launcher of %s reports the end of a migration if its release does', async (line) => {
  await serve();
  const launcher = await start(line);
  await call(launcher, 'SyncMigrationTarget', withVmi(MIGRATING));
  launcher.receiveMigration();
  await launcher.waitFor('the guest', ({ state }) => state.domain?.status === 'Running');
  expect(launcher.state.migration?.hasEnded ?? false).toBe(linesFrom('v1.6').includes(line));
  expect(launcher.events.filter(({ type }) => type === 'ADDED')).toHaveLength(1);
});

test('hotplug changes devices, and only those that the launcher may plug', async () => {
  await serve();
  const disks = [...VMI.spec.domain.devices.disks, { name: 'hot', disk: { bus: 'scsi' } }];
  const interfaces = [
    ...VMI.spec.domain.devices.interfaces,
    { name: 'net2', bridge: {} },
    { name: 'sriov', sriov: {} },
  ];
  const volumes = [...VMI.spec.volumes, { name: 'hot', persistentVolumeClaim: { claimName: 'c', hotpluggable: true } }];
  const spec = { domain: { ...VMI.spec.domain, devices: { disks, interfaces } }, volumes };
  const ready = { phase: 'Running', volumeStatus: [{ name: 'hot', target: 'sda', phase: 'Ready' }] };
  const options = { interfaceDomainAttachment: { default: 'tap', net2: 'tap' } };
  for (const line of ['v1.0', 'v1.3'] as const) {
    const launcher = await start(line, { socketsDir: join(dir, line) });
    await call(launcher, 'SyncVirtualMachine', withVmi());
    await call(launcher, 'SyncVirtualMachine', withVmi({ spec, status: { phase: 'Running' } }));
    expect(launcher.state).toMatchObject({ disks: ['root'], interfaces: ['default'] });
    await call(launcher, 'SyncVirtualMachine', { ...withVmi({ spec, status: ready }), options });
    await call(launcher, 'HotplugHostDevices', withVmi({ spec, status: ready }));
    const plugged = line === 'v1.0' ? ['default'] : ['default', 'net2'];
    expect(launcher.state).toMatchObject({
      disks: ['root', 'hot'],
      interfaces: plugged,
      hostDevices: ['sriov-sriov'],
    });
    await call(launcher, 'SyncVirtualMachine', withVmi({ status: { phase: 'Running' } }));
    expect(launcher.state.disks).toEqual(['root']);
  }
});

test('vCPUs and memory follow the VMI, within their limits', async () => {
  await serve();
  const launcher = await start('v1.3');
  await call(launcher, 'SyncVirtualMachine', withVmi());
  const grown = (sockets: number): Fields =>
    withVmi({
      spec: {
        ...VMI.spec,
        domain: {
          ...VMI.spec.domain,
          cpu: { sockets, cores: 1, threads: 1 },
          memory: { guest: '1Gi', maxGuest: '4Gi' },
        },
      },
      status: { phase: 'Running', memory: { guestAtBoot: '512Mi' } },
    });
  await call(launcher, 'SyncVirtualMachineCPUs', grown(2));
  await call(launcher, 'SyncVirtualMachineMemory', grown(2));
  expect(launcher.state).toMatchObject({ vcpus: 2, memoryKiB: 1_048_576 });
  const { bytes } = await call(launcher, 'SyncVirtualMachineCPUs', grown(8));
  expect(Buffer.from(bytes).toString()).toContain('requested vcpus is greater than max allowable vcpus');
  expect(launcher.state.vcpus).toBe(2);
});

test('a hung launcher takes connections and answers when it is itself again', async () => {
  await serve();
  const launcher = await start('v1.6');
  launcher.hang();
  expect(await knock(launcher.cmdSocket)).toBe(true);
  const pending = call(launcher, 'Ping', {});
  const isAnswered = await Promise.race([
    pending.then(() => true),
    new Promise((resolve) => setTimeout(resolve, 50, false)),
  ]);
  expect(isAnswered).toBe(false);
  launcher.unhang();
  expect((await pending).code).toBe(0);
});

test('SIGTERM marks the graceful shutdown, and ends a launcher without a domain', async () => {
  await serve();
  const launcher = await start('v1.6');
  await call(launcher, 'SyncVirtualMachine', withVmi());
  launcher.terminate();
  expect(launcher.domainJson()).toContain('"MarkedForGracefulShutdown":true');
  expect(launcher.state.process).toBe('running');
  const idle = await start('v1.6', { socketsDir: join(dir, 'idle') });
  idle.terminate();
  expect(idle.state.process).toBe('stopped');
});

test('an aborted migration leaves the guest running at the source', async () => {
  await serve();
  const launcher = await start('v1.6', { lifeCycle: { migrationMs: 60_000 } });
  await call(launcher, 'SyncVirtualMachine', withVmi());
  const options = JSON.stringify({ AllowWorkloadDisruption: true });
  await call(launcher, 'MigrateVirtualMachine', { ...withVmi(MIGRATING), options });
  expect(launcher.state.migration).toMatchObject({ role: 'source', allowsDisruption: true, hasEnded: false });
  await call(launcher, 'CancelVirtualMachineMigration', withVmi(MIGRATING));
  await launcher.waitFor('the abort', ({ state }) => state.migration?.hasEnded === true);
  expect(launcher.state).toMatchObject({ domain: { status: 'Running' }, migration: { hasFailed: true } });
  expect(launcher.domainJson()).toContain('"AbortStatus":"Succeeded"');
});
