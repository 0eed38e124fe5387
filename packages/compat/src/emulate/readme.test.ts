import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { inspect } from 'node:util';

import { expect, test } from 'vitest';

const README = readFileSync(join(import.meta.dirname, '../../README.md'), 'utf8');
const [, section = ''] = /## Emulated releases\n([^]*?)(?:\n## |$)/.exec(README) ?? [];
const [, code = ''] = /```ts\n([^]*?)```/.exec(section) ?? [];

test('the example of emulated releases runs and says what it says', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'compat-readme-'));
  const index = pathToFileURL(join(import.meta.dirname, '../index.ts')).href;
  // Every `expression; // value` becomes an entry of the list that is exported.
  const recorded = code
    .replaceAll("'@virtwire/compat'", `'${index}'`)
    .replaceAll("'/tmp/compat-'", JSON.stringify(join(folder, 'c-')))
    .replaceAll(
      /^([a-z][^\n=]*|started\.calls[^\n]*); \/\/ (.*)$/gm,
      (_all, expression: string, value: string) => `said.push([${expression}, ${JSON.stringify(value)}]);`,
    );
  const file = join(folder, 'example.ts');
  writeFileSync(file, `export const said: [unknown, string][] = [];\n${recorded}`);
  try {
    const { said } = (await import(pathToFileURL(file).href)) as { said: readonly (readonly [unknown, string])[] };
    expect(said.map(([value]) => inspect(value))).toEqual(said.map(([, text]) => text));
    expect(said).toHaveLength(3);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
