import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { VIRTWIRE_ERROR_CODES } from './errors.ts';

test('the README lists exactly the codes of errors', () => {
  const readme = readFileSync(join(import.meta.dirname, '..', 'README.md'), 'utf8');
  const list = /one of the codes ([\s\S]*?)\./.exec(readme)?.[1] ?? '';
  expect(list.split(/,\s+/)).toEqual([...VIRTWIRE_ERROR_CODES]);
});
