import { expect, test } from 'vitest';
import { systemClock } from './clock.ts';

test.each([
  ['the longest timer of Node', 2 ** 31 - 1],
  ['one millisecond more', 2 ** 31],
  ['the longest that a request can ask for', (2 ** 31 - 1) * 1_000],
  ['for ever', Infinity],
])('a sleep of %s outlives a short one, and ends when nobody wants it any more', async (_what, ms) => {
  const ending = new AbortController();
  const long = systemClock.sleep(ms, ending.signal).then(() => 'long');
  const short = systemClock.sleep(20).then(() => 'short');
  expect(await Promise.race([long, short])).toBe('short');
  ending.abort();
  expect(await long).toBe('long');
  await systemClock.sleep(ms, ending.signal);
});

test('a sleep of no length, or of less, is over at once', async () => {
  await systemClock.sleep(0);
  await systemClock.sleep(-5);
});
