import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { openGhostRecords } from '../ghost-records/ghost-records.ts';
import type { GhostRecord } from '../ghost-records/ghost-records.ts';
import type { Vmi } from '../model.ts';
import { startFakeLauncher } from '../testing/fake-launcher.ts';
import type { FakeLauncher } from '../testing/fake-launcher.ts';
import { sampleVmi } from '../testing/samples.ts';
import { recordedLog } from '../testing/silent-log.ts';
import { connectLauncher } from './launcher.ts';
import { Launchers } from './launchers.ts';
import { isSocketUnresponsive, markUnresponsive } from './sockets.ts';

let root = '';
const fakes: FakeLauncher[] = [];
beforeEach(() => {
  root = mkdtempSync('/tmp/vl');
});
afterEach(() => {
  for (const fake of fakes.splice(0)) fake.kill();
  rmSync(root, { recursive: true, force: true });
});

const socketOf = (pod: string): string => join(root, 'p', pod, 'volumes/kubernetes.io~empty-dir/sockets/launcher-sock');

async function serve(pod: string): Promise<FakeLauncher> {
  mkdirSync(dirname(socketOf(pod)), { recursive: true });
  const fake = await startFakeLauncher(socketOf(pod));
  fakes.push(fake);
  return fake;
}

interface Options {
  readonly now?: () => number;
  readonly pipeError?: Error;
}

function setUp({ now = () => 0, pipeError }: Options = {}) {
  const gone: GhostRecord[] = [];
  const sockets: string[] = [];
  let pipes = 0;
  let open = 0;
  const records = openGhostRecords(join(root, 'private'), join(root, 'p'), recordedLog());
  const launchers = new Launchers(
    {
      records,
      connect: connectLauncher,
      async openPipe() {
        pipes += 1;
        if (pipeError !== undefined) throw pipeError;
        open += 1;
        return { [Symbol.asyncDispose]: async () => void (open -= 1) };
      },
      detectIsolation: async () => ({ pid: 1, ppid: 0, rootPath: '/' }),
      now,
      log: recordedLog(),
      onGone: (record) => gone.push(record),
      onSocket: (key) => sockets.push(key),
    },
    { podsDir: join(root, 'p'), nodeName: 'node01' },
  );
  return { launchers, records, gone, sockets, pipes: () => pipes, openPipes: () => open };
}

async function until(what: string, condition: () => boolean): Promise<void> {
  for (let i = 0; i < 1_000; i += 1) {
    if (condition()) return;
    await sleep(5);
  }
  throw new Error(`timed out waiting for ${what}`);
}

test('FM-3.7 a thousand callers at once share one connection and one pipe', async () => {
  const fake = await serve('pod-1');
  const { launchers, pipes } = setUp();
  await using _all = launchers;
  const clients = await Promise.all(Array.from({ length: 1_000 }, () => launchers.get(sampleVmi('Running'))));
  expect(new Set(clients).size).toBe(1);
  expect(fake.calls.map((call) => call.rpc)).toEqual(['Info']);
  expect(pipes()).toBe(1);
});

test('FM-3.1 the ghost record is there before the first dial, and stays when the dial fails', async () => {
  mkdirSync(dirname(socketOf('pod-1')), { recursive: true });
  writeFileSync(socketOf('pod-1'), '');
  const { launchers, records } = setUp();
  await using _all = launchers;
  await expect(launchers.get(sampleVmi('Running'))).rejects.toThrow();
  expect(records.get('ns1/vm1')).toMatchObject({ uid: 'uid-1', socketFile: socketOf('pod-1') });
  expect(launchers.info('uid-1')?.client).toBeUndefined();
});

test('a pipe that cannot be made closes the connection, keeps the record, and the next try works', async () => {
  const fake = await serve('pod-1');
  const broken = setUp({ pipeError: new Error('no pod') });
  await expect(broken.launchers.get(sampleVmi('Running'))).rejects.toThrow('no pod');
  expect(broken.records.get('ns1/vm1')?.uid).toBe('uid-1');
  await broken.launchers[Symbol.asyncDispose]();
  const { launchers } = setUp();
  await using _all = launchers;
  await launchers.getVerified(sampleVmi('Running'));
  expect(fake.calls.at(-1)?.rpc).toBe('Ping');
});

test('FM-3.8 closing is idempotent, and forgetting removes the record as well', async () => {
  await serve('pod-1');
  const { launchers, records, openPipes } = setUp();
  await using _all = launchers;
  await launchers.get(sampleVmi('Running'));
  await Promise.all([launchers.close('uid-1'), launchers.close('uid-1')]);
  expect(openPipes()).toBe(0);
  expect(records.get('ns1/vm1')?.uid).toBe('uid-1');
  const owner = { namespace: 'ns1', name: 'vm1', uid: 'uid-1' };
  await Promise.all([launchers.forget(owner), launchers.forget(owner)]);
  expect(records.list()).toEqual([]);
  expect(launchers.size).toBe(0);
});

test('FM-11.1 two hundred connects and closes leave nothing open', async () => {
  await serve('pod-1');
  const { launchers, openPipes } = setUp();
  await using _all = launchers;
  const owner = { namespace: 'ns1', name: 'vm1', uid: 'uid-1' };
  const cycle = async (): Promise<void> => {
    await launchers.get(sampleVmi('Running'));
    await launchers.forget(owner);
  };
  const descriptors = (): number => readdirSync('/proc/self/fd').length;
  for (let i = 0; i < 20; i += 1) await cycle();
  await sleep(50);
  const before = descriptors();
  for (let i = 0; i < 200; i += 1) await cycle();
  await until('the descriptors are closed', () => descriptors() <= before + 2);
  expect(openPipes()).toBe(0);
  expect(launchers.size).toBe(0);
});

test('a launcher whose connection ends and whose socket refuses is gone; one that listens again is not', async () => {
  const first = await serve('pod-1');
  const { launchers, gone } = setUp();
  await using _all = launchers;
  await launchers.get(sampleVmi('Running'));
  first.kill();
  await until('the loss is told', () => gone.length > 0);
  expect(gone).toHaveLength(1);
  expect(gone[0]?.uid).toBe('uid-1');
});

test.each<[string, (vmi: Vmi) => Promise<void> | void, string]>([
  ['no pod directory', () => undefined, 'unresponsive'],
  ['a pod directory alone', () => void mkdirSync(dirname(socketOf('pod-1')), { recursive: true }), 'not-initialized'],
  [
    'a socket',
    async () => {
      await serve('pod-1');
    },
    'responsive',
  ],
  [
    'a marked socket',
    async () => {
      await serve('pod-1');
      markUnresponsive(socketOf('pod-1'));
    },
    'unresponsive',
  ],
])('state of a launcher with %s', async (_title, prepare, expected) => {
  const vmi = sampleVmi('Scheduled');
  await prepare(vmi);
  const { launchers } = setUp();
  await using _all = launchers;
  expect(launchers.state(vmi)).toBe(expected);
});

test('a launcher has three minutes to come up, counted from the first look', async () => {
  mkdirSync(dirname(socketOf('pod-1')), { recursive: true });
  let nowMs = 0;
  const { launchers } = setUp({ now: () => nowMs });
  await using _all = launchers;
  const vmi = sampleVmi('Scheduled');
  launchers.track(vmi);
  nowMs = 180_000;
  expect(launchers.state(vmi)).toBe('not-initialized');
  nowMs = 180_001;
  expect(launchers.state(vmi)).toBe('unresponsive');
});

test('a socket that appears is told by an event', async () => {
  mkdirSync(dirname(socketOf('pod-1')), { recursive: true });
  const { launchers, sockets } = setUp();
  await using _all = launchers;
  launchers.track(sampleVmi('Scheduled'));
  await serve('pod-1');
  await until('the socket is told', () => sockets.length > 0);
  expect(sockets).toEqual(['ns1/vm1']);
});

test('FM-3.6 the marker of a pod that is gone is no error', () => {
  const socketFile = socketOf('pod-9');
  markUnresponsive(socketFile);
  expect(existsSync(dirname(socketFile))).toBe(false);
  expect(isSocketUnresponsive(socketFile)).toBe(true);
});

test('two pods with sockets are an error that says so', async () => {
  await serve('pod-1');
  await serve('pod-2');
  const { launchers } = setUp();
  await using _all = launchers;
  const vmi = sampleVmi('Running', (one) => {
    one.status = { ...one.status, activePods: { 'pod-1': 'node01', 'pod-2': 'node01', 'pod-3': 'node02' } };
  });
  await expect(launchers.get(vmi)).rejects.toThrow(
    'Found multiple sockets for vmi ns1/vm1. waiting for only one to exist',
  );
});
