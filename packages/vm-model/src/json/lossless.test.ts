import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { VmModelError } from '../errors.ts';
import { goSyntaxError } from './go-syntax-error.ts';
import { parseJson, renderGoString, renderJson } from './lossless.ts';

describe('the errors are those of Go', () => {
  test.each([
    ['', 'unexpected end of JSON input'],
    ['  ', 'unexpected end of JSON input'],
    ['{"a":', 'unexpected end of JSON input'],
    ['"abc', 'unexpected end of JSON input'],
    ['[1,2', 'unexpected end of JSON input'],
    ['nothing', "invalid character 'o' in literal null (expecting 'u')"],
    ['trux', "invalid character 'x' in literal true (expecting 'e')"],
    ['fals3', "invalid character '3' in literal false (expecting 'e')"],
    ['not json', "invalid character 'o' in literal null (expecting 'u')"],
    ['<xml>', "invalid character '<' looking for beginning of value"],
    ['é', "invalid character 'Ã' looking for beginning of value"],
    ["'a'", "invalid character '\\'' looking for beginning of value"],
    ['[1,]', "invalid character ']' looking for beginning of value"],
    ['{a:1}', "invalid character 'a' looking for beginning of object key string"],
    ['{"a":1,}', "invalid character '}' looking for beginning of object key string"],
    ['{"a" 1}', "invalid character '1' after object key"],
    ['{"a":1 "b":2}', `invalid character '"' after object key:value pair`],
    ['[1 2]', "invalid character '2' after array element"],
    ['{} x', "invalid character 'x' after top-level value"],
    ['01', "invalid character '1' after top-level value"],
    ['-', 'unexpected end of JSON input'],
    ['-x', "invalid character 'x' in numeric literal"],
    ['1.x', "invalid character 'x' after decimal point in numeric literal"],
    ['1ex', "invalid character 'x' in exponent of numeric literal"],
    ['1e+x', "invalid character 'x' in exponent of numeric literal"],
    ['"\n"', "invalid character '\\n' in string literal"],
    ['"\u0001"', "invalid character '\\x01' in string literal"],
    ['"\\x"', "invalid character 'x' in string escape code"],
    ['"\\u12g4"', "invalid character 'g' in \\u hexadecimal character escape"],
  ])('%j: %s', (text, message) => {
    expect(() => parseJson(text)).toThrow(new VmModelError('InvalidJson', message));
  });

  test('both parsers agree on what is JSON', () => {
    const mutated = fc
      .tuple(fc.json(), fc.nat(60), fc.nat(5), fc.string({ maxLength: 2 }))
      .map(([text, at, cut, put]) => text.slice(0, at) + put + text.slice(at + cut));
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.json(), mutated), (text) => {
        let isValid = true;
        try {
          JSON.parse(text);
        } catch {
          isValid = false;
        }
        expect(goSyntaxError(text) === undefined).toBe(isValid);
      }),
      { numRuns: 500 },
    );
  });

  test('nesting is bounded, in the words of Go, whatever stands in strings', () => {
    const nested = (depth: number): string => `${'["]]",'.repeat(depth)}1${']'.repeat(depth)}`;
    expect(() => parseJson(nested(1_001))).toThrow(new VmModelError('InvalidJson', 'exceeded max depth'));
    expect(parseJson(nested(999))).toHaveLength(2);
    expect(parseJson(`"${'['.repeat(30_000)}"`)).toHaveLength(30_000);
    expect(goSyntaxError('['.repeat(1_001))).toBe('exceeded max depth');
  });
});

test('integers beyond 2^53 keep their digits, everything else is as in JSON.parse', () => {
  const text =
    '{"a":[9007199254740993,-9223372036854775808,18446744073709551615],"b":1.5,"c":"9007199254740993","d":1e3}';
  expect(parseJson(text)).toEqual({
    a: [9007199254740993n, -9223372036854775808n, 18446744073709551615n],
    b: 1.5,
    c: '9007199254740993',
    d: 1000,
  });
  expect(renderJson(parseJson(text))).toBe(text.replace('1e3', '1000'));
  expect(renderJson({ a: [9_007_199_254_740_993n] }, 1)).toBe('{\n "a": [\n  9007199254740993\n ]\n}');
});

test('what is printed reads as what it was', () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      const text = JSON.stringify(value);
      expect(renderJson(parseJson(text))).toBe(JSON.stringify(JSON.parse(text)));
    }),
  );
});

test('a cycle is an error with a code', () => {
  const loop: Record<string, unknown> = {};
  loop['self'] = loop;
  expect(() => renderJson(loop)).toThrow(VmModelError);
});

test('a string is printed as by Go', () => {
  expect(renderGoString('<a>&"\u2028\udc00')).toBe('"\\u003ca\\u003e\\u0026\\"\\u2028\ufffd"');
});
