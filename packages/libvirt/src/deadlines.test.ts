import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { Deadlines } from './deadlines.ts';
import type { Expiring } from './deadlines.ts';

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
});

function entry(name: string, timeoutMs: number, log: string[], pending: Set<Expiring>): Expiring {
  const one = {
    deadlineAtMs: performance.now() + timeoutMs,
    expire: () => {
      log.push(name);
      pending.delete(one);
    },
  };
  pending.add(one);
  return one;
}

test('ends each at its time, whatever the order of adding, with one timer', () => {
  const pending = new Set<Expiring>();
  const log: string[] = [];
  const deadlines = new Deadlines(() => pending);
  for (const [name, timeoutMs] of [
    ['late', 500],
    ['soon', 100],
    ['middle', 300],
  ] as const) {
    deadlines.add(entry(name, timeoutMs, log, pending).deadlineAtMs, performance.now());
  }
  expect(vi.getTimerCount()).toBe(1);
  vi.advanceTimersByTime(99);
  expect(log).toEqual([]);
  vi.advanceTimersByTime(2);
  expect(log).toEqual(['soon']);
  vi.advanceTimersByTime(200);
  expect(log).toEqual(['soon', 'middle']);
  vi.advanceTimersByTime(200);
  expect(log).toEqual(['soon', 'middle', 'late']);
  expect(vi.getTimerCount()).toBe(0);
});

test('leaves the timer alone when things end before their time, and none behind when it is disposed of', () => {
  const pending = new Set<Expiring>();
  const log: string[] = [];
  const deadlines = new Deadlines(() => pending);
  for (let i = 0; i < 100; i++) {
    const one = entry('never', 1_000 + i, log, pending);
    deadlines.add(one.deadlineAtMs, performance.now());
    pending.delete(one);
  }
  expect(vi.getTimerCount()).toBe(1);
  deadlines.add(Infinity, performance.now());
  vi.advanceTimersByTime(1_000);
  expect([log, vi.getTimerCount()]).toEqual([[], 0]);
  deadlines.add(performance.now() + 10, performance.now());
  deadlines[Symbol.dispose]();
  expect(vi.getTimerCount()).toBe(0);
});
