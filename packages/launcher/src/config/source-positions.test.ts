import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { sourcePositions } from './source-positions.ts';

const root = mkdtempSync(join(tmpdir(), 'virtwire-positions-'));
afterAll(() => rmSync(root, { recursive: true }));

test('places in a bundle get the names that stand beside it', () => {
  const bundle = join(root, 'virt-launcher.mjs');
  writeFileSync(`${bundle}.places.json`, '{"1:1207":"launcher.ts:3"}');
  const resolve = sourcePositions(bundle);
  expect(['virt-launcher.mjs:1:1207', 'virt-launcher.mjs:1:8', 'other.mjs:1:1207'].map(resolve)).toEqual([
    'launcher.ts:3',
    'virt-launcher.mjs:1',
    'other.mjs:1',
  ]);
});

test.each([
  ['is missing', undefined],
  ['is no JSON', '{'],
])('places stay as they are when the file with the names %s', (_title, text) => {
  const bundle = join(root, 'other.mjs');
  if (text !== undefined) writeFileSync(`${bundle}.places.json`, text);
  expect(sourcePositions(bundle)('other.mjs:1:5')).toBe('other.mjs:1');
});
