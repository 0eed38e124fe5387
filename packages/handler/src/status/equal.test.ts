import fc from 'fast-check';
import { expect, test } from 'vitest';
import { isSemanticallyEqual } from './equal.ts';

test.each<[string, unknown, unknown, boolean]>([
  ['absent and null', { a: 1 }, { a: 1, b: null }, true],
  ['absent and an empty list', { a: 1 }, { a: 1, b: [] }, true],
  ['absent and an empty object', {}, { b: { c: {} } }, true],
  ['another order of keys', { a: 1, b: 2 }, { b: 2, a: 1 }, true],
  ['another order of a list', [1, 2], [2, 1], false],
  ['a longer list', [1], [1, 1], false],
  ['an empty string is something', { a: '' }, {}, false],
  ['a number and the same as bigint', 5, 5n, true],
  ['other types', { a: '1' }, { a: 1 }, false],
])('%s', (_title, a, b, isSame) => {
  expect(isSemanticallyEqual(a, b)).toBe(isSame);
  expect(isSemanticallyEqual(b, a)).toBe(isSame);
});

test('every JSON value equals its copy, and differs from one with more in it', () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      expect(isSemanticallyEqual(value, structuredClone(value))).toBe(true);
      expect(isSemanticallyEqual({ value }, { value, more: 1 })).toBe(false);
    }),
  );
});
