import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import type { Server, Socket } from 'node:net';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { renderDomainJson } from '@virtwire/vm-model';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { openGhostRecords } from '../ghost-records/ghost-records.ts';
import { connectLauncher } from '../launchers/launcher.ts';
import { Launchers } from '../launchers/launchers.ts';
import { startFakeLauncher } from '../testing/fake-launcher.ts';
import type { FakeLauncher } from '../testing/fake-launcher.ts';
import { sampleDomain } from '../testing/samples.ts';
import { recordedLog } from '../testing/silent-log.ts';
import { createDomainStore } from './domain-store.ts';
import { DomainWatch } from './domain-watch.ts';

let root = '';
const fakes: FakeLauncher[] = [];
const silent: Server[] = [];
const held: Socket[] = [];
beforeEach(() => {
  root = mkdtempSync('/tmp/vw');
});
afterEach(() => {
  for (const fake of fakes.splice(0)) fake.kill();
  for (const socket of held.splice(0)) socket.destroy();
  for (const server of silent.splice(0)) server.close();
  rmSync(root, { recursive: true, force: true });
});

const socketOf = (name: string): string => join(root, 'p', name, 's/launcher-sock');
const key = (name: string): string => `ns1/${name}`;

function domainJson(name: string, status: 'Running' | 'Paused' = 'Running'): string {
  return renderDomainJson(
    sampleDomain(status, 'User', (domain) => {
      domain.ObjectMeta.name = name;
      domain.Spec.Metadata.KubeVirt.UID = name;
    }),
  );
}

async function serve(name: string, domain = domainJson(name)): Promise<FakeLauncher> {
  mkdirSync(dirname(socketOf(name)), { recursive: true });
  const fake = await startFakeLauncher(socketOf(name));
  fake.domain = domain;
  fakes.push(fake);
  return fake;
}

/** A launcher that takes connections and never says a word. */
async function hang(name: string): Promise<void> {
  mkdirSync(dirname(socketOf(name)), { recursive: true });
  const server = createServer((socket) => void held.push(socket));
  silent.push(server);
  await new Promise<void>((resolve) => void server.listen(socketOf(name), resolve));
}

function setUp(names: readonly string[], resyncPeriodMs = 300_000) {
  const lines: Record<string, unknown>[] = [];
  const log = recordedLog(lines);
  const records = openGhostRecords(join(root, 'private'), join(root, 'p'), log);
  for (const name of names) records.add({ namespace: 'ns1', name, uid: name, socketFile: socketOf(name) });
  const store = createDomainStore();
  const launchers = new Launchers(
    {
      records,
      connect: connectLauncher,
      openPipe: async () => ({ [Symbol.asyncDispose]: async () => undefined }),
      detectIsolation: async () => ({ pid: 1, ppid: 0, rootPath: '/' }),
      now: Date.now,
      log,
      onGone: (record) => watch.markGone(record),
    },
    { podsDir: join(root, 'p'), nodeName: '' },
  );
  const watch = new DomainWatch(
    { store, records, launchers, connect: connectLauncher, isNonRoot: () => false, now: Date.now, log },
    { watchdogTimeoutMs: resyncPeriodMs < 1_000 ? 1 : 30_000, resyncPeriodMs },
  );
  return { store, records, launchers, watch, lines };
}

async function until(what: string, condition: () => boolean, limitMs = 15_000): Promise<void> {
  const endsAtMs = Date.now() + limitMs;
  while (!condition()) {
    if (Date.now() > endsAtMs) throw new Error(`timed out waiting for ${what}`);
    await sleep(5);
  }
}

test('FM-2.7 a listing knows every launcher: living, without a domain, silent, refusing and gone', async () => {
  await serve('alive');
  await serve('empty', '');
  await hang('silent');
  const { store, launchers, watch } = setUp(['alive', 'empty', 'silent', 'gone']);
  await using _launchers = launchers;
  await using _watch = watch;
  watch.start();
  expect(store.fact(key('silent')).state).toBe('unknown');
  const statusOf = (name: string): string | undefined => store.get(key(name))?.Status.Status;
  await until('the silent one is given up for now', () => statusOf('silent') === 'Unknown');
  expect(statusOf('alive')).toBe('Running');
  expect(store.isKnown(key('empty'))).toBe(true);
  expect(store.fact(key('empty'))).toEqual({ state: 'absent', uid: '' });
  expect(store.get(key('gone'))?.ObjectMeta.deletionTimestamp).toBeDefined();
});

test('FM-2.8 ten launchers that hang among two hundred do not delay the others', async () => {
  const names = Array.from({ length: 200 }, (_, i) => `vm${i}`);
  await Promise.all(names.map((name, i) => (i % 20 === 3 ? hang(name) : serve(name))));
  const { store, launchers, watch } = setUp(names);
  await using _launchers = launchers;
  await using _watch = watch;
  watch.start();
  const heard = (): number => names.filter((name) => store.get(key(name))?.Status.Status === 'Running').length;
  await until('all that answer are heard', () => heard() === 190);
  await until('the others are unknown', () => names.every((name) => store.isKnown(key(name))));
});

test('a launcher that answers again after it was silent is heard', async () => {
  mkdirSync(dirname(socketOf('vm1')), { recursive: true });
  await hang('vm1');
  const { store, launchers, watch } = setUp(['vm1']);
  await using _launchers = launchers;
  await using _watch = watch;
  watch.start();
  await until('it is unknown', () => store.get(key('vm1'))?.Status.Status === 'Unknown');
  for (const server of silent.splice(0)) server.close();
  for (const socket of held.splice(0)) socket.destroy();
  await serve('vm1');
  await until('it is heard', () => store.get(key('vm1'))?.Status.Status === 'Running');
});

test('a resync brings what no event told, and an event that comes meanwhile is newer', async () => {
  const fake = await serve('vm1');
  const { store, launchers, watch } = setUp(['vm1']);
  await using _launchers = launchers;
  await using _watch = watch;
  watch.start();
  await until('it is heard', () => store.get(key('vm1')) !== undefined);
  fake.domain = domainJson('vm1', 'Paused');
  await watch.resync();
  expect(store.get(key('vm1'))?.Status.Status).toBe('Paused');
  fake.answer('GetDomain', { delayMs: 200 });
  const resync = watch.resync();
  await sleep(50);
  const event = sampleDomain('Shutoff', 'Shutdown', (domain) => {
    domain.ObjectMeta.name = 'vm1';
  });
  store.upsert(event);
  await resync;
  expect(store.get(key('vm1'))).toBe(event);
});

test('P4 a launcher that tells the domain of another VM is not believed', async () => {
  await serve('vm1', domainJson('vm2'));
  await serve('vm2', '');
  const { store, launchers, watch } = setUp(['vm1', 'vm2']);
  await using _launchers = launchers;
  await using _watch = watch;
  watch.start();
  await until('both are heard', () => store.isKnown(key('vm1')) && store.isKnown(key('vm2')));
  expect(store.get(key('vm1'))?.Status.Status).toBe('Unknown');
  expect(store.fact(key('vm2')).state).toBe('absent');
});

test('a stop while a launcher hangs does not wait for it', { timeout: 10_000 }, async () => {
  await hang('vm1');
  const { launchers, watch } = setUp(['vm1']);
  watch.start();
  await sleep(50);
  await watch[Symbol.asyncDispose]();
  await launchers[Symbol.asyncDispose]();
  expect(launchers.size).toBe(0);
});

test('a round that throws is said once and does not end resync and watchdog for good', async () => {
  const fake = await serve('vm1');
  const { store, records, launchers, watch, lines } = setUp(['vm1'], 20);
  await using _launchers = launchers;
  await using _watch = watch;
  watch.start();
  await until('it is heard', () => store.get(key('vm1')) !== undefined);
  const list = records.list.bind(records);
  let failures = 0;
  records.list = () => {
    failures += 1;
    throw new Error('the disk is gone');
  };
  const said = (what: string): number => lines.filter((line) => line['msg'] === `${what} failed, going on`).length;
  await until('both fail', () => failures > 20 && said('watchdog of launchers') > 0);
  expect([said('resync of domains'), said('watchdog of launchers')]).toEqual([1, 1]);
  records.list = list;
  fake.domain = domainJson('vm1', 'Paused');
  await until('a resync sees it', () => store.get(key('vm1'))?.Status.Status === 'Paused');
  fake.kill();
  await until('the watchdog sees that it is gone', () => store.fact(key('vm1')).state === 'absent');
});
