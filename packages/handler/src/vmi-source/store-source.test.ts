import { expect, test } from 'vitest';
import { HandlerError } from '../errors.ts';
import type { Vmi } from '../model.ts';
import { sampleVmi } from '../testing/samples.ts';
import { recordedLog } from '../testing/silent-log.ts';
import { createStoreSource } from './store-source.ts';
import type { VmiSourceEvent } from './source.ts';

/** A shared store in memory, with the API server's rules. */
function memoryStore(first: Vmi | undefined) {
  let vmi = first;
  let notify: (key: string) => void = () => undefined;
  const bump = (next: Vmi): Vmi => ({
    ...next,
    metadata: { ...next.metadata, resourceVersion: String(Number(next.metadata.resourceVersion) + 1) },
  });
  return {
    list: () => (vmi === undefined ? [] : [vmi]),
    get: () => vmi,
    async update(next: Vmi) {
      if (vmi?.metadata.uid !== next.metadata.uid) throw Object.assign(new Error('gone'), { code: 'NotFound' });
      if (vmi.metadata.resourceVersion !== next.metadata.resourceVersion) {
        throw Object.assign(new Error('stale'), { code: 'Conflict' });
      }
      vmi = bump(next);
      return vmi;
    },
    watch(listener: (key: string) => void) {
      notify = listener;
      return { [Symbol.dispose]: () => undefined };
    },
    /** Someone else writes. */
    put(next: Vmi | undefined) {
      vmi = next === undefined ? undefined : bump(next);
      notify('ns1/vm1');
    },
  };
}

function setUp(first: Vmi | undefined) {
  const store = memoryStore(first);
  const source = createStoreSource({ store, log: recordedLog() }, 'node01');
  const heard: VmiSourceEvent['type'][] = [];
  source.watch((event) => heard.push(event.type));
  return { store, source, heard };
}

test('an own update is visible at once and comes as an event', async () => {
  const { source, heard } = setUp(sampleVmi('Scheduled'));
  const stored = await source.update(sampleVmi('Running'));
  expect(stored.metadata.resourceVersion).toBe('8');
  expect(source.get('ns1/vm1')).toBe(stored);
  expect(heard).toEqual(['modified']);
});

test('a conflict is told by its code, and the newest object is there for the next try', async () => {
  const { store, source } = setUp(sampleVmi('Scheduled'));
  store.put(sampleVmi('Scheduled', (vmi) => (vmi.spec.terminationGracePeriodSeconds = 99)));
  const failed = source.update(sampleVmi('Running'));
  await expect(failed).rejects.toThrow(HandlerError);
  await expect(failed).rejects.toMatchObject({ code: 'Conflict' });
  expect(source.get('ns1/vm1')?.spec.terminationGracePeriodSeconds).toBe(99);
});

test('a VMI that comes to this node is added, one that leaves it or is removed is deleted', () => {
  const elsewhere = sampleVmi('Scheduled', (vmi) => (vmi.metadata.labels = {}));
  const { store, source, heard } = setUp(elsewhere);
  expect(source.list()).toEqual([]);
  expect(source.getAnywhere('ns1/vm1')).toBe(elsewhere);
  store.put(sampleVmi('Scheduled', (vmi) => (vmi.metadata.resourceVersion = '20')));
  store.put(sampleVmi('Scheduled', (vmi) => ((vmi.metadata.labels = {}), (vmi.metadata.resourceVersion = '30'))));
  store.put(sampleVmi('Scheduled', (vmi) => (vmi.metadata.resourceVersion = '40')));
  store.put(undefined);
  expect(heard).toEqual(['added', 'deleted', 'added', 'deleted']);
});

test('a VMI of the same name with another UID is a deletion and an addition', () => {
  const { store, heard } = setUp(sampleVmi('Running'));
  store.put(sampleVmi('Scheduled', (vmi) => (vmi.metadata.uid = 'uid-2')));
  expect(heard).toEqual(['deleted', 'added']);
});

test('nothing is told when nothing changed', () => {
  const { store, heard } = setUp(sampleVmi('Running'));
  store.put(sampleVmi('Running', (vmi) => (vmi.metadata.resourceVersion = '6')));
  expect(heard).toEqual([]);
});
