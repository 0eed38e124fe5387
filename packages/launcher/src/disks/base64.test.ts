import fc from 'fast-check';
import { expect, test } from 'vitest';

import { decodeBase64 } from './base64.ts';

test.each([
  ['!!!!', 0],
  ['YWJj*', 4],
  ['YWJ', 0],
  ['YWJjZA', 4],
  ['YWJjZA=', 7],
  ['YWJjZA==x', 8],
  ['YWJj=', 4],
])('%s is illegal at byte %i, as Go says', (text, at) => {
  expect(() => decodeBase64(text)).toThrow(`illegal base64 data at input byte ${String(at)}`);
});

test('what was encoded comes back, line ends or not', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => {
      const encoded = Buffer.from(text, 'utf8').toString('base64');
      expect(decodeBase64(encoded)).toBe(Buffer.from(text, 'utf8').toString('utf8'));
      expect(decodeBase64(encoded.replaceAll(/(.{4})/g, '$1\r\n'))).toBe(Buffer.from(text, 'utf8').toString('utf8'));
    }),
  );
});
