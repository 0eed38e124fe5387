import { expect, test } from 'vitest';
import { timerDelay } from './timer-delay.ts';

test.each([
  [-5, 0],
  [30_000, 30_000],
  // A grace period of 2^31 - 1 seconds, as people write it for a VM that is never to be killed.
  [2_147_483_647_000, 2_147_483_647],
  [Infinity, 2_147_483_647],
])('a wait of %s ms is a timer of %i ms', (ms, timer) => {
  expect(timerDelay(ms)).toBe(timer);
});
