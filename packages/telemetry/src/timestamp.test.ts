import fc from 'fast-check';
import { expect, test } from 'vitest';
import { nowMicroseconds, parseTimestamp, renderTimestamp } from './timestamp.ts';

test('parse reads back what render prints, to the microsecond', () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 4_102_444_800_000_000 }), (us) => {
      expect(parseTimestamp(renderTimestamp(us))).toBe(us);
    }),
  );
});

test('fractions of other lengths are read', () => {
  expect(parseTimestamp('1970-01-01T00:00:01.5Z')).toBe(1_500_000);
  expect(parseTimestamp('1970-01-01T00:00:01Z')).toBe(1_000_000);
  expect(parseTimestamp('1970-01-01T00:00:01.123456789Z')).toBe(1_123_456);
});

test('what is no timestamp is undefined', () => {
  for (const text of ['', 'yesterday', '2026-13-41T00:00:00Z', '2026-11-29 18:00:00Z']) {
    expect(parseTimestamp(text)).toBeUndefined();
  }
});

test('the clock never steps back within a process', () => {
  let last = 0;
  for (let i = 0; i < 1_000; i += 1) {
    const now = nowMicroseconds();
    expect(now).toBeGreaterThanOrEqual(last);
    last = now;
  }
});
