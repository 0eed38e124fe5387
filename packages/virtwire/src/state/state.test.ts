import { execFile } from 'node:child_process';
import { appendFileSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Vmi } from '@virtwire/vm-model';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { openJournal } from '../journal/journal.ts';
import { lockHolder } from './file-lock.ts';
import { candidateSubnets, nodeLayout } from './layout.ts';
import { takeNodeLock } from './node-lock.ts';
import { openSandboxRecords } from './sandbox-records.ts';
import { VmiFiles } from './vmi-files.ts';

let dir = '';
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'virtwire-state-'));
});
afterEach(() => rmSync(dir, { recursive: true }));

const vmi = (name: string): Vmi => ({
  metadata: { name, namespace: 'ns1', uid: `uid-${name}` },
  spec: { domain: { devices: {} } },
});

test('a socket of a pod fits the kernel, wherever the state directory lies', () => {
  for (const stateDir of ['/var/lib/virtwire', `/tmp/${'long'.repeat(30)}`]) {
    const socket = `${nodeLayout(stateDir).podsMount}/${'0'.repeat(36)}/volumes/kubernetes.io~empty-dir/sockets/launcher-sock`;
    expect(Buffer.byteLength(socket)).toBeLessThanOrEqual(107);
  }
});

test('two state directories share no name', () => {
  const [a, b] = [nodeLayout('/a'), nodeLayout('/b')];
  for (const key of ['runDir', 'podsMount', 'bridge', 'cgroupParent'] as const) expect(a[key]).not.toBe(b[key]);
  expect(a.bridge.length).toBeLessThanOrEqual(15);
});

test('a state directory with : and , in its name puts neither into mount options', () => {
  const { runDir, podsMount, sandboxesDir } = nodeLayout('/srv/a:b,c d');
  for (const path of [runDir, podsMount, sandboxesDir]) expect(path).toMatch(/^[\w/-]+$/);
});

test('candidate networks are all different', () => {
  const all = [...candidateSubnets(7)];
  expect(new Set(all).size).toBe(all.length);
});

test('what was recorded and not removed is found again', () => {
  const file = join(dir, 'journal.jsonl');
  const first = openJournal(file);
  first.record('pod', { kind: 'mount', path: '/a' });
  first.record('pod', { kind: 'netns', name: 'n' });
  first.forget({ owner: 'pod', resource: { kind: 'mount', path: '/a' } });
  expect(openJournal(file).entries()).toEqual([{ owner: 'pod', resource: { kind: 'netns', name: 'n' } }]);
});

test('a line that a crash cut off does not hide the others', () => {
  const file = join(dir, 'journal.jsonl');
  openJournal(file).record('pod', { kind: 'netns', name: 'n' });
  appendFileSync(file, '{"op":"made","owner":"po');
  expect(openJournal(file).entries()).toHaveLength(1);
});

test('an empty journal leaves no file', () => {
  const file = join(dir, 'journal.jsonl');
  const journal = openJournal(file);
  journal.record('pod', { kind: 'netns', name: 'n' });
  journal.forget({ owner: 'pod', resource: { kind: 'netns', name: 'n' } });
  expect(existsSync(file)).toBe(false);
});

test('a state directory belongs to one process, which the refusal names', () => {
  const file = join(dir, 'node.lock');
  using _first = takeNodeLock(file, 'virtwire run a.yaml');
  expect(() => takeNodeLock(file, 'virtwire run b.yaml')).toThrow(/"virtwire run a.yaml" \(process \d+\) runs on/);
});

test('the lock of a killed process is taken over', () => {
  const file = join(dir, 'node.lock');
  writeFileSync(file, JSON.stringify({ pid: process.pid, startTicks: '1', command: 'dead' }));
  expect(lockHolder(file)).toBeUndefined();
  using _lock = takeNodeLock(file, 'me');
  expect(lockHolder(file)?.command).toBe('me');
});

test.each([
  ['empty', ''],
  ['cut off', '{"pid":1,"startT'],
  ['of another shape', 'null'],
  ['of another type', '{"pid":"1"}'],
])('a lock file that is %s keeps no node from starting', (_title, text) => {
  const file = join(dir, 'node.lock');
  writeFileSync(file, text);
  expect(lockHolder(file)).toBeUndefined();
  {
    using _lock = takeNodeLock(file, 'me');
    expect(lockHolder(file)?.command).toBe('me');
  }
  expect(readdirSync(dir)).toEqual([]);
});

test('of several processes that find the lock of the same dead one, one gets it', async () => {
  const [processes, rounds] = [4, 100];
  const stale = JSON.stringify({ pid: process.pid, startTicks: '1', command: 'dead' });
  for (let i = 0; i < rounds; i += 1) writeFileSync(join(dir, `lock${i}`), stale);
  const module = join(import.meta.dirname, 'file-lock.ts');
  const script = `
    import { existsSync, writeFileSync } from 'node:fs';
    import { tryLock } from ${JSON.stringify(module)};
    const [dir, me, processes, rounds] = process.argv.slice(1);
    const won = [];
    for (let i = 0; i < Number(rounds); i += 1) {
      writeFileSync(dir + '/at' + i + '-' + me, '');
      for (let other = 0; other < Number(processes); other += 1) while (!existsSync(dir + '/at' + i + '-' + other));
      if (tryLock(dir + '/lock' + i, 'p' + me) !== undefined) won.push(i);
    }
    writeFileSync(dir + '/done-' + me, '');
    for (let other = 0; other < Number(processes); other += 1) while (!existsSync(dir + '/done-' + other));
    process.stdout.write(JSON.stringify(won));`;
  const args = ['-C', '@virtwire/source', '--input-type=module-typescript', '-e', script, dir];
  const runs = Array.from({ length: processes }, (_, me) =>
    promisify(execFile)(process.execPath, [...args, String(me), String(processes), String(rounds)]),
  );
  const won = (await Promise.all(runs)).flatMap(({ stdout }) => JSON.parse(stdout) as number[]);
  expect(won.sort((a, b) => a - b)).toEqual(Array.from({ length: rounds }, (_, i) => i));
});

test('an update with an old version is refused', async () => {
  const store = new VmiFiles(dir);
  const created = await store.create(vmi('a'));
  await store.update(created);
  await expect(store.update(created)).rejects.toMatchObject({ code: 'Conflict' });
});

test('an update of a VMI that was made anew is refused', async () => {
  const store = new VmiFiles(dir);
  const created = await store.create(vmi('a'));
  await store.remove('ns1/a');
  await store.create({ ...vmi('a'), metadata: { ...vmi('a').metadata, uid: 'other' } });
  await expect(store.update(created)).rejects.toMatchObject({ code: 'NotFound' });
});

test('two writers at a time: one wins, the other is told', async () => {
  const [one, two] = [new VmiFiles(dir), new VmiFiles(dir)];
  const created = await one.create(vmi('a'));
  const results = await Promise.allSettled([one.update(created), two.update(created)]);
  expect(results.map((r) => r.status).sort()).toEqual(['fulfilled', 'rejected']);
});

test('unknown fields and large integers survive', async () => {
  const store = new VmiFiles(dir);
  const odd = { ...vmi('a'), future: { n: 9_007_199_254_740_993n } };
  await store.create(odd);
  expect(readFileSync(join(dir, 'ns1_a.json'), 'utf8')).toContain('9007199254740993');
  expect(store.get('ns1/a')).toMatchObject({ future: { n: 9_007_199_254_740_993n } });
});

test('a watcher hears of changes by other processes', async () => {
  const [one, two] = [new VmiFiles(dir), new VmiFiles(dir)];
  const heard = Promise.withResolvers<string>();
  using _watch = one.watch((key) => heard.resolve(key));
  await two.create(vmi('a'));
  expect(await heard.promise).toBe('ns1/a');
});

test('records of sandboxes are read back', () => {
  const records = openSandboxRecords(join(dir, 'records'));
  expect(records.list()).toEqual([]);
  const record = {
    ...{ podUid: 'p', pid: 1, startTicks: '2', podIp: '10.0.0.2', netnsPath: '/n' },
    ...{ vmiUid: 'u', namespace: 'ns1', name: 'a', keep: true },
  };
  records.write(record);
  expect(records.list()).toEqual([record]);
  records.remove('u');
  expect(records.read('u')).toBeUndefined();
});
