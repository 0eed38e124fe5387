import { expect, test } from 'vitest';
import { createIoErrorRetry } from './io-error-retry.ts';

test('waits 10, 20, 40, 80, 160 and at most 180 seconds while the error comes back', () => {
  const retry = createIoErrorRetry();
  let nowMs = 0;
  expect(retry.delayMs('u', nowMs)).toBe(0);
  const waits: number[] = [];
  for (let i = 0; i < 7; i += 1) {
    nowMs += 1_000;
    const delayMs = retry.delayMs('u', nowMs);
    waits.push((delayMs + 1_000) / 1_000);
    nowMs += delayMs + 1;
    expect(retry.delayMs('u', nowMs)).toBe(0);
  }
  expect(waits.map(Math.round)).toEqual([10, 20, 40, 80, 160, 180, 180]);
});

test('a VM that ran well for half a minute begins anew, and is forgotten by the sweep', () => {
  const retry = createIoErrorRetry();
  retry.delayMs('u', 0);
  expect(retry.delayMs('u', 31_000)).toBe(0);
  retry.sweep(50_000);
  expect(retry.size).toBe(1);
  retry.sweep(62_000);
  expect(retry.size).toBe(0);
});
