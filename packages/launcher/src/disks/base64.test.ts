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
    fc.property(fc.uint8Array(), (bytes) => {
      const encoded = Buffer.from(bytes).toString('base64');
      expect(decodeBase64(encoded)).toEqual(Buffer.from(bytes));
      expect(decodeBase64(encoded.replaceAll(/(.{4})/g, '$1\r\n'))).toEqual(Buffer.from(bytes));
    }),
  );
});
