import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { inspect } from 'node:util';
import { expect, test } from 'vitest';
import { VmModelError, type VmModelErrorCode } from './errors.ts';

const README = readFileSync(join(import.meta.dirname, '../README.md'), 'utf8');
const blocks = [...README.matchAll(/```ts\n([^]*?)```/g)].map(([, code = '']) => code);

test('the README has examples', () => {
  expect(blocks.length).toBe(4);
});

test.each(blocks)('the example of the README runs and says what it says: %#', async (code) => {
  const folder = mkdtempSync(join(tmpdir(), 'virtwire-readme-'));
  const index = pathToFileURL(join(import.meta.dirname, 'index.ts')).href;
  const payloads = pathToFileURL(join(import.meta.dirname, 'payloads/index.ts')).href;
  // Every `expression; // value` becomes an entry of the list that is exported.
  const recorded = code
    .replaceAll("'@virtwire/vm-model'", `'${index}'`)
    .replaceAll("'@virtwire/vm-model/payloads'", `'${payloads}'`)
    .replaceAll(
      /^([a-z][^\n=]*); \/\/ (.*)$/gm,
      (_all, expression: string, value: string) => `said.push([${expression}, ${JSON.stringify(value)}]);`,
    );
  const file = join(folder, 'example.ts');
  writeFileSync(file, `export const said: [unknown, string][] = [];\n${recorded}`);
  try {
    const { said } = (await import(pathToFileURL(file).href)) as {
      readonly said: readonly (readonly [unknown, string])[];
    };
    expect(said.length).toBeGreaterThan(0);
    for (const [value, text] of said) expect(inspect(value).startsWith(text.replace(/…'$/, ''))).toBe(true);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('the README lists exactly the codes of the errors', () => {
  const codes: Record<VmModelErrorCode, true> = {
    InvalidJson: true,
    InvalidXml: true,
    InvalidTime: true,
    InvalidValue: true,
    InvalidVmi: true,
  };
  const listed = /with a stable `code`: ([^.]*)\./.exec(README)?.[1]?.match(/Invalid\w+/g);
  expect(listed).toEqual(Object.keys(codes));
  expect(new VmModelError('InvalidVmi', 'x').name).toBe('VmModelError');
});
