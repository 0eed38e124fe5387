import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  canonicalQuantity,
  isZeroQuantity,
  parseQuantity,
  quantityValue,
  renderBytes,
  renderQuantity,
} from './quantity.ts';

describe('the canonical form is that of Go', () => {
  test.each([
    ['0', '0'],
    ['0n', '0'],
    ['0Ki', '0'],
    ['-0', '0'],
    ['1', '1'],
    ['+1', '1'],
    ['-1', '-1'],
    ['1n', '1n'],
    ['1000n', '1u'],
    ['1000m', '1'],
    ['1500m', '1500m'],
    ['0.5', '500m'],
    ['.5', '500m'],
    ['5.', '5'],
    ['1.2k', '1200'],
    ['1000k', '1M'],
    ['1000000', '1M'],
    ['123456789', '123456789'],
    ['1E', '1E'],
    ['1Ki', '1Ki'],
    ['1024Ki', '1Mi'],
    ['1024Mi', '1Gi'],
    ['1536Mi', '1536Mi'],
    ['1.5Gi', '1536Mi'],
    ['0.5Ki', '512'],
    ['0.001Ki', '1024m'],
    ['1.0005Ki', '1024512m'],
    ['-1024Ki', '-1Mi'],
    ['1e3', '1e3'],
    ['1e+3', '1e3'],
    ['1000e3', '1e6'],
    ['12E6', '12e6'],
    ['1e-3', '1e-3'],
    ['0.1e3', '100'],
    ['0.0000000001', '1n'],
    ['-0.0000000001', '-1n'],
    ['100Ei', '9223372036854775807'],
    ['-100Ei', '-9223372036854775807'],
    ['9223372036854775807', '9223372036854775807'],
    ['99999999999999999999', '9223372036854775807'],
    ['1e1000000', '9223372036854775807'],
    ['1e-1000000', '1e-9'],
  ])('%s is %s', (text, canonical) => {
    expect(canonicalQuantity(text)).toBe(canonical);
    expect(canonicalQuantity(canonical)).toBe(canonical);
  });
});

test.each([
  '',
  ' ',
  '1 ',
  ' 1',
  '.',
  '+',
  '-',
  '+-1',
  '1.2.3',
  'Gi',
  '1K',
  '1Kii',
  '1gi',
  '1 Gi',
  '1e',
  'e3',
  '1e3Ki',
  '1,5',
  '0x10',
  'NaN',
  '1_000',
])('%j is no quantity', (text) => {
  expect(parseQuantity(text)).toBeUndefined();
  expect(canonicalQuantity(text)).toBe(text);
  expect(quantityValue(text)).toBe(0n);
});

test('a JSON number is a quantity too', () => {
  expect(canonicalQuantity(2)).toBe('2');
  expect(canonicalQuantity(0.5)).toBe('500m');
  expect(quantityValue(1e21)).toBe(2n ** 63n - 1n);
});

test.each<[string, bigint]>([
  ['1Gi', 1_073_741_824n],
  ['1500m', 2n],
  ['1', 1n],
  ['-1500m', -2n],
  ['0.1', 1n],
  ['1Ei', 1_152_921_504_606_846_976n],
])('the value of %s is rounded away from zero: %s', (text, value) => {
  expect(quantityValue(text)).toBe(value);
});

test('unset is zero', () => {
  expect(isZeroQuantity(undefined)).toBe(true);
  expect(isZeroQuantity('0Gi')).toBe(true);
  expect(isZeroQuantity('1m')).toBe(false);
  expect(quantityValue(undefined)).toBe(0n);
});

test.each<[bigint, string]>([
  [0n, '0'],
  [1023n, '1023'],
  [1024n, '1Ki'],
  [1025n, '1025'],
  [3n << 30n, '3Gi'],
  [-2048n, '-2Ki'],
])('%s bytes are %s', (bytes, text) => {
  expect(renderBytes(bytes)).toBe(text);
});

test.each([
  ['1Gi', true],
  ['1.5Gi', false],
  ['1500m', false],
  ['1000', true],
  ['1000000Mi', true],
  ['100000000000Gi', false],
])('%s is held as a plain integer: %s', (text, isPlain) => {
  expect(parseQuantity(text)?.isPlainInteger).toBe(isPlain);
});

test('what is printed reads as the same amount', () => {
  const nano = fc.bigInt({ min: -(2n ** 63n) * 10n ** 9n + 10n ** 9n, max: (2n ** 63n - 1n) * 10n ** 9n });
  const format = fc.constantFrom('BinarySI' as const, 'DecimalSI' as const, 'DecimalExponent' as const);
  fc.assert(
    fc.property(nano, format, (amount, family) => {
      expect(parseQuantity(renderQuantity({ nano: amount, format: family }))?.nano).toBe(amount);
    }),
  );
});

test('random text never hangs or throws', () => {
  fc.assert(fc.property(fc.string(), (text) => typeof canonicalQuantity(text) === 'string'));
});
