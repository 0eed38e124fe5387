import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';

import { isConnectionLoss, isRetryable, PROTO_ERROR_CODES, ProtoError } from './errors.ts';
import { goQuote } from './go-quote.ts';
import { renderStatus } from './grpc-status.ts';
import { checkJson, isJsonNull } from './json-check.ts';

describe('goQuote', () => {
  test.each([
    ['plain', '"plain"'],
    ['say "no"\\', '"say \\"no\\"\\\\"'],
    ['a\tb\r\n\u0007\b\f\v', '"a\\tb\\r\\n\\a\\b\\f\\v"'],
    ['\u0000\u001b\u007f', '"\\x00\\x1b\\x7f"'],
    ['größe 世界 😀', '"größe 世界 😀"'],
    ['\u00a0\u200b\u{e0001}', '"\\u00a0\\u200b\\U000e0001"'],
    ['\ud800', '"\ufffd"'],
  ])('quotes %j as Go does', (text, quoted) => {
    expect(goQuote(text)).toBe(quoted);
  });

  test('leaves no control character in any text', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        expect(goQuote(text)).not.toMatch(/\p{Cc}/u);
      }),
    );
  });
});

describe('renderStatus', () => {
  test.each([
    [1, 'Canceled'],
    [2, 'Unknown'],
    [4, 'DeadlineExceeded'],
    [8, 'ResourceExhausted'],
    [12, 'Unimplemented'],
    [13, 'Internal'],
    [14, 'Unavailable'],
    [99, 'Code(99)'],
  ])('names code %i as Go does', (code, name) => {
    expect(renderStatus(code, 'words')).toBe(`rpc error: code = ${name} desc = words`);
  });
});

describe('checkJson', () => {
  test.each<[string, string, boolean]>([
    ['an object', '{"a":[1,{"b":"}]"}]}', true],
    ['an object nested to the limit', `{"a":${'['.repeat(199)}${']'.repeat(199)}}`, true],
    ['one nested deeper', `{"a":${'['.repeat(200)}${']'.repeat(200)}}`, false],
    ['brackets inside a string', `{"a":"${'['.repeat(500)}\\"${'{'.repeat(500)}"}`, true],
    ['nothing', '', false],
    ['an array', '[]', false],
    ['null', 'null', false],
    ['half an object', '{"a":', false],
    ['brackets that never end', '['.repeat(1_000_000), false],
  ])('%s', (_what, text, isGood) => {
    expect(checkJson(Buffer.from(text)) === undefined).toBe(isGood);
  });

  test('bytes that are not UTF-8', () => {
    expect(checkJson(Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]))).toBeDefined();
  });

  test('takes every object that JSON.stringify prints', () => {
    fc.assert(
      fc.property(fc.object({ maxDepth: 5 }), (value) => {
        expect(checkJson(Buffer.from(JSON.stringify(value)))).toBeUndefined();
      }),
    );
  });

  test('null is recognised with white space around it', () => {
    expect(isJsonNull(Buffer.from('\n null '))).toBe(true);
    expect(isJsonNull(Buffer.from('"null"'))).toBe(false);
    expect(isJsonNull(Buffer.alloc(0))).toBe(false);
  });
});

describe('errors', () => {
  test('FM-3.9 whatever ends a connection counts as its loss, and nothing else', () => {
    const losses = PROTO_ERROR_CODES.filter((code) => isConnectionLoss(new ProtoError(code, '')));
    expect(losses).toEqual(['Closed', 'DialFailed', 'Disconnected', 'Unavailable']);
  });

  test('FM-1.3 only transport errors and Aborted are worth another try', () => {
    const retryable = PROTO_ERROR_CODES.filter((code) => isRetryable(new ProtoError(code, '')));
    expect(retryable).toEqual(['DeadlineExceeded', 'DialFailed', 'Disconnected', 'Unavailable']);
    expect(isRetryable(new ProtoError('Rpc', '', { grpcCode: 10 }))).toBe(true);
    expect(isRetryable(new ProtoError('Rpc', '', { grpcCode: 5 }))).toBe(false);
  });

  test('the README lists exactly these codes', () => {
    const readme = readFileSync(join(import.meta.dirname, '../README.md'), 'utf8');
    const listed = Array.from(readme.matchAll(/^\| `([A-Z][A-Za-z]+)` +\|/gm), (match) => match[1]);
    expect(listed).toEqual([...PROTO_ERROR_CODES]);
  });
});
