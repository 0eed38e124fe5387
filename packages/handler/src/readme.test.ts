import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { HANDLER_ERROR_CODES } from './errors.ts';
import { HANDLER_FLAGS } from './flags.ts';

const PACKAGE = join(import.meta.dirname, '..');
const readme = readFileSync(join(PACKAGE, 'README.md'), 'utf8');

test('the README lists exactly the error codes that there are', () => {
  const [, section = ''] = readme.split('## Errors');
  const listed = Array.from((section.split('\n## ')[0] ?? '').matchAll(/^\| `(\w+)` +\|/gm), (match) => match[1]);
  expect(listed).toEqual([...HANDLER_ERROR_CODES]);
});

test('the README names every flag', () => {
  for (const flag of Object.keys(HANDLER_FLAGS)) expect(readme).toContain(`--${flag}`);
});

test('the example of the README has sound types', () => {
  const [, example = ''] = /```ts\n([\s\S]*?)```/.exec(readme) ?? [];
  mkdirSync(join(PACKAGE, 'temp'), { recursive: true });
  const scratch = mkdtempSync(join(PACKAGE, 'temp/readme-'));
  try {
    writeFileSync(join(scratch, 'example.ts'), example);
    const config = { extends: '../../tsconfig.json', include: ['example.ts'] };
    writeFileSync(join(scratch, 'tsconfig.json'), JSON.stringify(config));
    const tsc = join(PACKAGE, '../../node_modules/.bin/tsc');
    execFileSync(process.execPath, [tsc, '-p', scratch], { stdio: 'pipe', encoding: 'utf8' });
  } finally {
    rmSync(scratch, { recursive: true });
  }
});
