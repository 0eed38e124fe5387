import fc from 'fast-check';
import { expect, test } from 'vitest';
import { VmModelError } from './errors.ts';
import { formatGoTime, parseDuration, parseTime, renderDuration, renderMicroTime, renderTime } from './time.ts';

test('a time is printed in UTC, whole seconds, rounded down', () => {
  expect(renderTime(Date.UTC(2026, 2, 1, 10, 0, 5, 999))).toBe('2026-03-01T10:00:05Z');
});

test('a micro time has six digits', () => {
  expect(renderMicroTime(Date.UTC(2026, 2, 1, 10, 0, 5, 42))).toBe('2026-03-01T10:00:05.042000Z');
});

test.each([
  ['2026-03-01T10:00:05Z', '2026-03-01T10:00:05Z'],
  ['2026-03-01T10:00:05.999999999Z', '2026-03-01T10:00:05Z'],
  ['2026-03-01T12:00:05+02:00', '2026-03-01T10:00:05Z'],
])('%s is %s', (text, canonical) => {
  expect(formatGoTime(text)).toBe(canonical);
});

test.each(['', 'yesterday', '2026-03-01', '2026-03-01 10:00:05', '2026-13-01T00:00:00Z', '2026-03-01T25:00:00Z'])(
  '%j is no time',
  (text) => {
    expect(() => parseTime(text)).toThrow(VmModelError);
  },
);

test.each<[string, number]>([
  ['0', 0],
  ['0s', 0],
  ['5s', 5_000],
  ['1h30m', 5_400_000],
  ['1.5h', 5_400_000],
  ['250ms', 250],
  ['10us', 0.01],
  ['-3s', -3_000],
  ['+3s', 3_000],
])('the duration %s is %d ms', (text, ms) => {
  expect(parseDuration(text)).toBeCloseTo(ms, 9);
});

test.each(['', '5', 's', '1h30', '1d', '1 h', '--1s', 'h1'])('%j is no duration', (text) => {
  expect(() => parseDuration(text)).toThrow(`time: invalid duration "${text}"`);
});

test.each<[number, string]>([
  [0, '0s'],
  [5_000, '5s'],
  [3_605_000, '1h0m5s'],
  [90_000, '1m30s'],
  [1_500, '1.5s'],
  [250, '250ms'],
  [0.01, '10µs'],
  [-3_000, '-3s'],
])('%d ms are printed as Go does: %s', (ms, text) => {
  expect(renderDuration(ms)).toBe(text);
});

test('a printed duration reads as the same duration', () => {
  fc.assert(
    fc.property(fc.integer({ min: -1e9, max: 1e9 }), (ms) => {
      expect(parseDuration(renderDuration(ms))).toBeCloseTo(ms, 6);
    }),
  );
});
