import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test, vi } from 'vitest';

import { startEarlyWork } from './early-work.ts';

const LONG_MS = 60_000;

test('work that nobody waited for is done once, and by the time it is needed', async () => {
  const work = vi.fn(() => Promise.resolve());
  const early = startEarlyWork(0, work);
  await sleep(20);
  expect(work).toHaveBeenCalledTimes(1);
  await early.finish();
  expect(work).toHaveBeenCalledTimes(1);
});

test('work that is needed before its time is done then, not twice', async () => {
  const work = vi.fn(() => Promise.resolve());
  const early = startEarlyWork(5, work);
  await early.finish();
  await sleep(20);
  expect(work).toHaveBeenCalledTimes(1);
});

test('a failure is told to the one who needs the work', async () => {
  const early = startEarlyWork(0, () => Promise.reject(new Error('no')));
  await sleep(20);
  await expect(early.finish()).rejects.toThrow('no');
});

test('work called off is not done, or not missed', async () => {
  const work = vi.fn(() => Promise.resolve());
  await startEarlyWork(LONG_MS, work).cancel();
  expect(work).not.toHaveBeenCalled();
  const failing = startEarlyWork(0, () => Promise.reject(new Error('no')));
  await sleep(20);
  await failing.cancel();
});
