import { expect, test } from 'vitest';
import { createMetadataCache } from './cache.ts';

test('storing notifies always, setting never, updating when a field differs', () => {
  const cache = createMetadataCache();
  cache.uid.set('u');
  expect(cache.takeNotification()).toBe(false);
  cache.uid.store('u');
  expect(cache.takeNotification()).toBe(true);
  cache.gracePeriod.update((grace) => ({ ...grace, DeletionGracePeriodSeconds: 30 }));
  expect(cache.takeNotification()).toBe(true);
  cache.gracePeriod.update((grace) => ({ ...grace, DeletionGracePeriodSeconds: 30 }));
  expect(cache.takeNotification()).toBe(false);
});

test('notifications coalesce, and a late listener hears of a pending one', () => {
  const cache = createMetadataCache();
  let heard = 0;
  cache.memoryDump.store({ FileName: 'a' });
  cache.onNotify(() => heard++);
  expect(heard).toBe(1);
  cache.memoryDump.store({ FileName: 'b' });
  expect(heard).toBe(1);
  expect(cache.takeNotification()).toBe(true);
  cache.memoryDump.store({ FileName: 'c' });
  expect(heard).toBe(2);
});

test('only cells that were written show, even written without a change', () => {
  const cache = createMetadataCache();
  expect(cache.snapshot().Migration).toBeUndefined();
  cache.migration.update((migration) => migration);
  expect(cache.snapshot().Migration).toEqual({});
  expect(cache.takeNotification()).toBe(false);
});
