import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterEach, beforeEach, describe, expect, test } from 'vitest';

import { RELEASE_LINES, type ReleaseLine } from '../../release-line.ts';
import type { EmulatedHandler, EmulatedLauncher, EmulatedLauncherOptions } from '../api.ts';
import { startEmulatedLauncher } from '../launcher/launcher.ts';
import { factsOf } from '../lines/lines.ts';
import { knock } from '../transport/grpc-client.ts';
import { statusText } from './call-errors.ts';
import { startEmulatedHandler } from './handler.ts';

const POD = 'pod-1';
const IDENTITY = { namespace: 'default', name: 'vm1', uid: 'uid-1' };
const vmi = (change: object = {}): Record<string, unknown> => ({
  apiVersion: 'kubevirt.io/v1',
  kind: 'VirtualMachineInstance',
  metadata: { namespace: 'default', name: 'vm1', uid: 'uid-1' },
  spec: {
    domain: {
      cpu: { sockets: 1, cores: 1, threads: 1, maxSockets: 4 },
      memory: { guest: '256Mi', maxGuest: '1Gi' },
      devices: {
        disks: [{ name: 'root', disk: { bus: 'virtio' } }],
        interfaces: [{ name: 'default', masquerade: {} }],
      },
    },
    volumes: [{ name: 'root', containerDisk: { image: 'disk:1' } }],
    terminationGracePeriodSeconds: 20,
  },
  status: { phase: 'Scheduled', activePods: { [POD]: 'node01' }, volumeStatus: [{ name: 'root', target: 'vda' }] },
  ...change,
});

let dir: string;
let stack: AsyncDisposableStack;

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'compat-'));
  mkdirSync(join(dir, 'pods'));
  stack = new AsyncDisposableStack();
  stack.defer(() => rmSync(dir, { recursive: true, force: true }));
});
afterEach(async () => stack.disposeAsync());

async function startHandler(line: ReleaseLine): Promise<EmulatedHandler> {
  const podShareDir = (pod: string): string => join(dir, 'root', pod);
  const dirs = { podsDir: join(dir, 'pods'), shareDir: join(dir, 'share'), podShareDir };
  return stack.use(await startEmulatedHandler({ line, ...dirs, expandDisks: true }));
}

async function startLauncher(
  line: ReleaseLine,
  more: Partial<EmulatedLauncherOptions> = {},
  pod = POD,
): Promise<EmulatedLauncher> {
  const socketsDir = join(dir, 'pods', pod, 'volumes/kubernetes.io~empty-dir/sockets');
  const shareDir = join(dir, 'root', pod);
  return stack.use(await startEmulatedLauncher({ line, vmi: IDENTITY, socketsDir, shareDir, podName: pod, ...more }));
}

const rpcsOf = (calls: readonly { rpc: string; channel: string }[]): string[] =>
  calls.filter(({ channel }) => channel === 'cmd').map(({ rpc }) => rpc);

describe.each(RELEASE_LINES)('a handler and a launcher of %s', (line) => {
  test('run a VM from start to stop', async () => {
    const handler = await startHandler(line);
    const launcher = await startLauncher(line, { lifeCycle: { agentMs: 5 } });
    const started = await handler.run('start', vmi(), POD);
    expect(started).toMatchObject({ ok: true, error: undefined });
    expect(rpcsOf(handler.calls).slice(0, 3)).toEqual(['Info', 'SyncVirtualMachine', 'SyncVirtualMachine']);
    await launcher.waitFor('the agent', ({ state }) => state.isAgentConnected);
    for (const action of ['update', 'pause', 'unpause', 'freeze', 'unfreeze', 'guestQueries', 'metrics'] as const) {
      expect(await handler.run(action, vmi(), POD)).toMatchObject({ action, ok: true });
    }
    expect(await handler.run('stop', vmi(), POD)).toMatchObject({ ok: true, error: undefined });
    await launcher.waitFor('its end', ({ state }) => state.process === 'stopped');
    expect(handler.events.every(({ accepted }) => accepted)).toBe(true);
    expect(handler.state.process).toBe('running');
  });

  test('migrate a VM, each in its role', async () => {
    const handler = await startHandler(line);
    const source = await startLauncher(line);
    const target = await startLauncher(line, {}, 'pod-2');
    await handler.run('start', vmi(), POD);
    const migrationState = { migrationUid: 'm-1', sourceNode: 'node01', targetNode: 'node02', targetPod: 'pod-2' };
    const status = { phase: 'Running', volumeStatus: [{ name: 'root', target: 'vda' }], migrationState };
    const prepared = await handler.run(
      'prepareMigrationTarget',
      vmi({ status: { ...status, activePods: { 'pod-2': 'node01' } } }),
      'pod-2',
    );
    expect(prepared).toMatchObject({ ok: true, error: undefined });
    const migrating = vmi({ status: { ...status, activePods: { [POD]: 'node01' } } });
    expect(await handler.run('migrate', migrating, POD)).toMatchObject({ ok: true });
    await source.waitFor('the end of the migration', ({ state }) => state.domain?.reason === 'Migrated');
    await handler.waitFor('the end in its own terms', (one) => one.hasMigrationEnded(IDENTITY));
    target.receiveMigration();
    await target.waitFor('the domain', ({ state }) => state.domain?.status === 'Running');
    const finalized = await handler.run('finalizeMigration', vmi({ status }), 'pod-2');
    expect(finalized).toMatchObject({ ok: true, error: undefined });
    expect(target.state.migration).toMatchObject({ role: 'target', isFinalized: true });
  });
});

test('v1.0 names the socket path as authority in both directions, v1.1 does not', async () => {
  for (const [line, has] of [
    ['v1.0', true],
    ['v1.1', false],
  ] as const) {
    const handler = await startHandler(line);
    const launcher = await startLauncher(line, {}, line);
    await handler.run('start', vmi({ status: { phase: 'Scheduled', activePods: { [line]: 'node01' } } }), line);
    expect(handler.calls[0]?.authority.startsWith('/')).toBe(has);
    const notify = launcher.calls.find(({ channel }) => channel === 'notify');
    expect(notify?.authority).toBe(has ? '/var/run/kubevirt/domain-notify-pipe.sock' : 'localhost');
    await handler[Symbol.asyncDispose]();
  }
});

test('a launcher up to v1.5 refuses a container disk whose handler sends no DisksInfo', async () => {
  const handler = await startHandler('v1.6');
  await startLauncher('v1.5');
  const { ok, error } = await handler.run('start', vmi(), POD);
  expect(ok).toBe(false);
  expect(error).toBe('server error. command SyncVMI failed: "no disk info provided for volume root"');
});

test('only the handlers that send the switch make old launchers grow disks', async () => {
  const grown: Record<string, boolean> = {};
  for (const line of ['v1.8', 'v1.9'] as const) {
    const handler = await startHandler(line);
    const launcher = await startLauncher('v1.8', {}, line);
    await handler.run('start', vmi({ status: { phase: 'Scheduled', activePods: { [line]: 'node01' } } }), line);
    grown[line] = launcher.state.expandsDisks;
    await handler[Symbol.asyncDispose]();
  }
  expect(grown).toEqual({ 'v1.8': true, 'v1.9': false });
});

test('a source handler up to v1.5 never sees the end of a migration of a launcher that prints no Completed', async () => {
  const handler = await startHandler('v1.5');
  const source = await startLauncher('v1.6');
  await handler.run('start', vmi(), POD);
  const status = { phase: 'Running', activePods: { [POD]: 'node01' }, migrationState: { migrationUid: 'm-1' } };
  await handler.run('migrate', vmi({ status }), POD);
  await source.waitFor('the last event', ({ events }) => events.at(-1)?.status === 'Shutoff/Migrated');
  await handler.waitFor('it', (one) => JSON.stringify(one.domain(IDENTITY)).includes('Migrated'));
  expect(handler.hasMigrationEnded(IDENTITY)).toBe(false);
});

test('a handler dies of an interface without alias', async () => {
  const handler = await startHandler('v1.7');
  const tamper = { domain: (text: string) => text.replace(/"Alias":\{"Name":"default"[^}]*\}/, '"Alias":null') };
  await startLauncher('v1.7', { tamper });
  const { ok } = await handler.run('start', vmi(), POD);
  expect(ok).toBe(false);
  expect(handler.state).toEqual({
    process: 'crashed',
    crashReason: 'the handler crashes on an interface with Alias null',
  });
});

test('an RPC that a launcher lacks is a generic error for v0.59 and passed through from v1.0 on', () => {
  const text = (line: ReleaseLine): string | undefined =>
    statusText(factsOf(line).handler, 'ResetVirtualMachine', 12, 'unknown method');
  expect(text('v0.59')).toBe(
    'unknown error encountered sending command Reset: rpc error: code = Unimplemented desc = unknown method',
  );
  expect(text('v1.0')).toBe('rpc error: code = Unimplemented desc = unknown method');
});

test('a launcher that is gone does not matter to calls that end a VM', () => {
  const facts = factsOf('v1.9').handler;
  expect(statusText(facts, 'KillVirtualMachine', 1, 'canceled')).toBeUndefined();
  expect(statusText(facts, 'SyncVirtualMachine', 1, 'canceled')).toBeDefined();
  expect(statusText(facts, 'KillVirtualMachine', 14, 'EOF')).toBeDefined();
});

test('events of the time without a notify server arrive once it is back', async () => {
  const handler = await startHandler('v1.3');
  const launcher = await startLauncher('v1.3');
  await handler.run('start', vmi(), POD);
  await handler.loseNotify();
  await handler.run('pause', vmi(), POD);
  expect(launcher.state.domain?.status).toBe('Paused');
  await launcher.waitFor('a second try', ({ events }) => events.some(({ attempts }) => attempts > 1));
  await handler.restoreNotify();
  await handler.waitFor('the pause', (one) => JSON.stringify(one.domain(IDENTITY)?.['Status']).includes('"Paused"'));
  await launcher.waitFor('the event', ({ events }) => events.at(-1)?.outcome === 'sent');
});

test.each<[ReleaseLine, boolean]>([
  ['v1.5', false],
  ['v1.6', true],
])('a handler of %s notices the loss of its notify socket: %s', async (line, notices) => {
  const podShareDir = (): string => join(dir, 'root');
  const dirs = { podsDir: join(dir, 'pods'), shareDir: join(dir, 'share'), podShareDir };
  const handler = stack.use(await startEmulatedHandler({ line, ...dirs, timeoutFactor: 0.002 }));
  await handler.loseNotify();
  expect(await knock(handler.notifySocket)).toBe(false);
  const deadlineAtMs = Date.now() + (notices ? 10_000 : 100);
  let isBack = false;
  while (!isBack && Date.now() < deadlineAtMs) isBack = await knock(handler.notifySocket);
  expect(isBack).toBe(notices);
});

test('a handler that starts anew finds the VM by its ghost record and takes it over', async () => {
  const first = await startHandler('v1.6');
  const launcher = await startLauncher('v1.6');
  await first.run('start', vmi(), POD);
  await first[Symbol.asyncDispose]();
  const second = await startHandler('v1.4');
  expect(await second.run('resync', vmi(), POD)).toMatchObject({ ok: true });
  expect(rpcsOf(second.calls)).toEqual(['Info', 'GetDomain']);
  expect(second.domain(IDENTITY)).toMatchObject({ Status: { Status: 'Running' } });
  expect(await second.run('stop', vmi(), POD)).toMatchObject({ ok: true, error: undefined });
  await launcher.waitFor('its end', ({ state }) => state.process === 'stopped');
});

test('a guest that ignores the power button is killed when its grace is over', async () => {
  const handler = await startHandler('v1.3');
  await startLauncher('v1.3', { lifeCycle: { shutdownMs: 'never' } });
  const short = vmi();
  (short['spec'] as { terminationGracePeriodSeconds: number }).terminationGracePeriodSeconds = 1;
  await handler.run('start', short, POD);
  const { ok, calls } = await handler.run('stop', short, POD);
  expect(ok).toBe(true);
  expect(calls.map(({ rpc }) => rpc)).toEqual([
    ...['Ping', 'ShutdownVirtualMachine', 'Ping', 'ShutdownVirtualMachine'],
    ...['Ping', 'KillVirtualMachine', 'Ping', 'DeleteVirtualMachine'],
  ]);
});

/** How long this process stands still, longer than a handler leaves the pipe open. */
const PAUSE_MS = 400;

test('the answer to the last event gets through the pipe, however busy the machine is', async () => {
  const handler = await startHandler('v1.0');
  const launcher = await startLauncher('v1.9');
  expect(await handler.run('start', vmi(), POD)).toMatchObject({ ok: true });
  const waiting = handler.waitFor('the last event', ({ calls }) => {
    const isLast = Buffer.from(calls.at(-1)?.requestBytes ?? []).includes('deletionTimestamp');
    if (isLast) setTimeout(() => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, PAUSE_MS));
    return isLast;
  });
  expect(await handler.run('kill', vmi(), POD)).toMatchObject({ ok: true });
  await waiting;
  await launcher.waitFor('the end of its events', ({ events }) => events.every(({ outcome }) => outcome !== 'pending'));
  expect(launcher.events.filter(({ outcome }) => outcome !== 'sent')).toEqual([]);
});
