import { EventEmitter } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Vmi } from '@virtwire/vm-model';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { VmiStore } from '../controller/store.ts';
import { VmiFiles } from '../state/vmi-files.ts';
import { Interrupts } from './interrupts.ts';
import { requestStop } from './run-command.ts';

let dir = '';
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'virtwire-interrupts-'));
});
afterEach(() => rmSync(dir, { recursive: true }));

const fakeSignals = (): EventEmitter & Pick<NodeJS.Process, 'on' | 'off'> =>
  new EventEmitter() as EventEmitter & Pick<NodeJS.Process, 'on' | 'off'>;

test('a Ctrl-C that comes before anybody listens is told to who listens later, and none is lost after that', () => {
  const signals = fakeSignals();
  using interrupts = new Interrupts(signals);
  signals.emit('SIGINT');
  const seen: number[] = [];
  interrupts.listen((count) => seen.push(count));
  signals.emit('SIGTERM');
  expect(seen).toEqual([1, 2]);
  expect(interrupts.count).toBe(2);
});

test('signals do what they do by themselves once nothing is left to remove', () => {
  const signals = fakeSignals();
  new Interrupts(signals)[Symbol.dispose]();
  expect(signals.listenerCount('SIGINT') + signals.listenerCount('SIGTERM')).toBe(0);
});

test('asking a VM to end that goes away between the look and the write is no failure', async () => {
  const vmi: Vmi = { metadata: { name: 'demo', namespace: 'default', uid: 'a' }, spec: { domain: { devices: {} } } };
  const files = new VmiFiles(dir);
  const stored = await files.create(vmi);
  await files.remove('default/demo');
  const store: VmiStore = {
    get: () => stored,
    list: () => files.list(),
    create: (one) => files.create(one),
    update: (one) => files.update(one),
    remove: (key) => files.remove(key),
    watch: (listener) => files.watch(listener),
  };
  await expect(requestStop({ store }, 'default/demo', false)).resolves.toBeUndefined();
});
