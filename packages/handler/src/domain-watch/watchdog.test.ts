import { expect, test } from 'vitest';
import { createWatchdog, watchdogPeriodMs } from './watchdog.ts';

test('FM-3.6 the period is a third of the timeout, plus a second', () => {
  expect(watchdogPeriodMs(30_000)).toBe(11_000);
  expect(watchdogPeriodMs(10_000)).toBe(4_000);
});

test('FM-3.6 a socket is dead after strictly more than the timeout, in every round until it answers', () => {
  const watchdog = createWatchdog(30_000);
  expect(watchdog.tick(0, ['a'])).toEqual([]);
  expect(watchdog.tick(11_000, ['a'])).toEqual([]);
  expect(watchdog.tick(30_999, ['a'])).toEqual([]);
  expect(watchdog.tick(33_000, ['a', 'b'])).toEqual(['a']);
  expect(watchdog.tick(44_000, ['a', 'b'])).toEqual(['a']);
  expect(watchdog.tick(55_000, [])).toEqual([]);
  expect(watchdog.tick(66_000, ['a', 'b'])).toEqual([]);
});
