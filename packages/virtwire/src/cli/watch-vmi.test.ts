import { expect, test } from 'vitest';
import type { VmiStore } from '../controller/store.ts';
import { waitForVmi } from './watch-vmi.ts';

const store = {
  get: () => undefined,
  watch: () => ({ [Symbol.dispose]: () => undefined }),
} as unknown as VmiStore;

test('waiting for a VM whose grace period is years does not end at once', async () => {
  const interrupted = new AbortController();
  const timeoutMs = 2_147_483_647_000;
  const waiting = waitForVmi(store, 'ns/vm', () => undefined, {
    what: 'its end',
    timeoutMs,
    signal: interrupted.signal,
  });
  setTimeout(() => interrupted.abort(new Error('interrupted by the user')), 30);
  await expect(waiting).rejects.toThrow('interrupted by the user');
});

test('waiting ends with its limit', async () => {
  const waiting = waitForVmi(store, 'ns/vm', () => undefined, { what: 'its end', timeoutMs: 5 });
  await expect(waiting).rejects.toThrow('its end: not within 0.005 s');
});
