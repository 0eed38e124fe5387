import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { makeDirectories } from './directory.ts';

const root = mkdtempSync(join(tmpdir(), 'virtwire-directory-'));
afterAll(() => rmSync(root, { recursive: true }));

test('directories are made down to the last, also when they are there', async () => {
  const dir = join(root, 'a/b/c');
  await makeDirectories(dir);
  await makeDirectories(dir);
  expect(statSync(dir).mode & 0o777).toBe(0o755);
});

test.each(['file', 'file/vm', 'file/vm/b1'])(
  'a file in the way of %s is told of in the words that people know',
  async (path) => {
    writeFileSync(join(root, 'file'), '');
    await expect(makeDirectories(join(root, path))).rejects.toThrow(`mkdir ${join(root, 'file')}: not a directory`);
  },
);

test('a place where nothing can be made is told by the first directory that is lacking', async () => {
  await expect(makeDirectories('/proc/virtwire/vm/b1')).rejects.toThrow(
    'mkdir /proc/virtwire: no such file or directory',
  );
});
