import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { LookTimer } from './look-timer.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** A timer that notes when it looked; a look lasts as long as told. */
function start(lookMs = 0): { timer: LookTimer; looks: number[] } {
  const looks: number[] = [];
  const startMs = Date.now();
  const timer = new LookTimer(async () => {
    looks.push(Date.now() - startMs);
    if (lookMs > 0) await new Promise((resolve) => setTimeout(resolve, lookMs));
  });
  timer.start();
  return { timer, looks };
}

test('a node on which something happens all the time is looked at nevertheless', async () => {
  const { timer, looks } = start();
  using _timer = timer;
  for (let i = 0; i < 100; i += 1) {
    await vi.advanceTimersByTimeAsync(100);
    timer.soon();
  }
  expect(looks.length).toBeGreaterThanOrEqual(9);
});

test('what happens during a look is looked at when it has settled, not at the next round', async () => {
  const { timer, looks } = start(100);
  using _timer = timer;
  await vi.advanceTimersByTimeAsync(50);
  timer.soon();
  await vi.advanceTimersByTimeAsync(500);
  expect(looks).toEqual([0, 200]);
});

test('a look that lasts long is followed by one more, however much happened, and never two at a time', async () => {
  const { timer, looks } = start(1_900);
  using _timer = timer;
  for (let i = 0; i < 18; i += 1) {
    await vi.advanceTimersByTimeAsync(100);
    if (i % 6 === 0) timer.soon();
  }
  await vi.advanceTimersByTimeAsync(1_900);
  expect(looks).toHaveLength(2);
  expect(looks[1]).toBeGreaterThanOrEqual(1_900);
});

test('several steps of one write are one look; without any there is one every two seconds', async () => {
  const { timer, looks } = start();
  await vi.advanceTimersByTimeAsync(10);
  timer.soon();
  await vi.advanceTimersByTimeAsync(100);
  timer.soon();
  await vi.advanceTimersByTimeAsync(4_200);
  timer[Symbol.dispose]();
  timer.soon();
  await vi.advanceTimersByTimeAsync(10_000);
  expect(looks).toEqual([0, 260, 2_260, 4_260]);
});
