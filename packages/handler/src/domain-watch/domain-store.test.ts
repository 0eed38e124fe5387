import { expect, test } from 'vitest';
import { sampleDomain } from '../testing/samples.ts';
import { goneDomain, unknownDomain } from './domain-object.ts';
import { createDomainStore } from './domain-store.ts';

const KEY = 'ns1/vm1';
const owner = { namespace: 'ns1', name: 'vm1', uid: 'uid-1' };

test('a domain with a deletion timestamp counts as absent and still gives its UID', () => {
  const store = createDomainStore();
  store.upsert(goneDomain(owner, '2026-03-01T12:00:00Z', true));
  expect(store.fact(KEY)).toEqual({ state: 'absent', uid: 'uid-1' });
});

test('P1 a launcher that has yet to be asked leaves its domain unknown until it was heard', () => {
  const store = createDomainStore();
  store.noteUnasked(KEY);
  expect(store.fact(KEY)).toEqual({ state: 'unknown', uid: '' });
  expect(store.isKnown(KEY)).toBe(false);
  store.noteAbsent(KEY);
  expect(store.fact(KEY)).toEqual({ state: 'absent', uid: '' });
  expect(store.isKnown(KEY)).toBe(true);
});

test('how the guest ended outlives the news that its launcher is gone', () => {
  const store = createDomainStore();
  store.upsert(sampleDomain('Shutoff', 'Shutdown'));
  store.upsert(goneDomain(owner, '2026-03-01T12:00:00Z', true));
  store.delete(KEY);
  expect(store.fact(KEY)).toMatchObject({ state: 'present', domain: { Status: { Reason: 'Shutdown' } } });
  store.upsert(sampleDomain('Running'));
  store.upsert(goneDomain(owner, '2026-03-01T12:00:00Z', true));
  expect(store.fact(KEY).state).toBe('absent');
});

test('listeners hear of changes, and not of the final clean-up', () => {
  const store = createDomainStore();
  const heard: string[] = [];
  const watch = store.watch((key) => heard.push(key));
  store.upsert(sampleDomain('Running'));
  store.drop(KEY);
  store.upsert(unknownDomain(owner));
  watch[Symbol.dispose]();
  store.delete(KEY);
  expect(heard).toEqual([KEY, KEY]);
  expect(store.isKnown(KEY)).toBe(true);
});
