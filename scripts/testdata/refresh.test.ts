import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { renderJson } from '@virtwire/vm-model';
import { afterAll, describe, expect, test } from 'vitest';
import { bundleText, openFiles, renderBundle } from './bundle.ts';
import { FAMILIES, targetOf } from './families.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const temporary = mkdtempSync(join(tmpdir(), 'virtwire-testdata-'));
afterAll(() => rmSync(temporary, { recursive: true }));

function folderOf(files: Readonly<Record<string, string>>): string {
  const folder = mkdtempSync(join(temporary, 'f-'));
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  }
  return folder;
}

const FOLDER = {
  'README.md': 'about',
  'a/in.json': '{ "big": 18446744073709551615,\n "list": [1, 2] }',
  'a/out.xml': '<a>\n\té</a>',
  'index.json': '[]',
};

describe('a bundle', () => {
  test('opens like the folder that it was made of', () => {
    const folder = folderOf(FOLDER);
    const path = join(temporary, 'bundle.ndjson.br');
    writeFileSync(path, renderBundle(folder));
    const [plain, packed] = [openFiles(folder), openFiles(path)];
    expect(packed.paths).toEqual(['a/in.json', 'a/out.xml', 'index.json']);
    for (const files of [plain, packed]) {
      expect(files.json('a/in.json')).toEqual({ big: 18446744073709551615n, list: [1, 2] });
      expect(files.text('a/in.json')).toBe('{"big":18446744073709551615,"list":[1,2]}');
      expect(files.text('a/out.xml')).toBe('<a>\n\té</a>');
      expect(files.has('a/none')).toBe(false);
      expect(() => files.text('a/none')).toThrow('no file a/none');
    }
  });

  test('is the same for the same folder, whatever its white space', () => {
    const spaced = folderOf(FOLDER);
    const dense = folderOf({ ...FOLDER, 'a/in.json': '{"big":18446744073709551615,"list":[1,2]}' });
    expect(renderBundle(spaced).equals(renderBundle(dense))).toBe(true);
    const other = folderOf({ ...FOLDER, 'a/in.json': '{}' });
    expect(bundleText(renderBundle(other))).not.toBe(bundleText(renderBundle(spaced)));
  });

  test('hands out copies, so that one test cannot change what the next one reads', () => {
    const files = openFiles(folderOf(FOLDER));
    (files.json('a/in.json') as { list: number[] }).list.push(3);
    expect(renderJson(files.json('a/in.json'))).toBe('{"big":18446744073709551615,"list":[1,2]}');
  });
});

describe('refresh.ts', () => {
  const refresh = async (...args: readonly string[]): Promise<{ code: number; text: string }> => {
    const command = ['-C', '@virtwire/source', join(ROOT, 'scripts/testdata/refresh.ts'), ...args];
    try {
      const { stdout, stderr } = await promisify(execFile)(process.execPath, command);
      return { code: 0, text: stdout + stderr };
    } catch (caught) {
      const { code, stdout, stderr } = caught as { code: number; stdout: string; stderr: string };
      return { code, text: stdout + stderr };
    }
  };

  test('every family of its table is in the repository', () => {
    for (const family of FAMILIES) expect(existsSync(join(ROOT, targetOf(family)))).toBe(true);
  });

  test('with --check and no source says so and succeeds', async () => {
    const { code, text } = await refresh('--check', '--from', join(temporary, 'missing'));
    expect(code).toBe(0);
    expect(text).toContain('the test data stays as it is');
  });

  test('with --check notices a source that differs, and writes nothing', async () => {
    const from = folderOf({ 'vectors/handler-phase/table.json': '[]' });
    const before = openFiles(join(ROOT, 'testdata/handler-phase.ndjson.br')).text('table.json');
    const { code, text } = await refresh('--check', '--from', from, 'handler-phase');
    expect(code).toBe(1);
    expect(text).toContain('testdata/handler-phase.ndjson.br differs from vectors/handler-phase');
    expect(openFiles(join(ROOT, 'testdata/handler-phase.ndjson.br')).text('table.json')).toBe(before);
  });

  test('with --check accepts a source that is the same', async () => {
    const files = openFiles(join(ROOT, 'testdata/handler-phase.ndjson.br'));
    const same = Object.fromEntries(files.paths.map((path) => [`vectors/handler-phase/${path}`, files.text(path)]));
    expect(await refresh('--check', '--from', folderOf(same), 'handler-phase')).toEqual({ code: 0, text: '' });
  });

  test('an unknown family lists the known ones and exits 2', async () => {
    const { code, text } = await refresh('nothing');
    expect(code).toBe(2);
    expect(text).toContain('known: converter, ');
  });
});
