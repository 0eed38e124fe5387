import { existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { ensureDirectories, wantedDirectories } from './directories.ts';
import { parseFlags } from './flags.ts';

const root = mkdtempSync(join(tmpdir(), 'virtwire-launcher-dirs-'));
afterEach(() => rmSync(root, { recursive: true, force: true }));

const flags = parseFlags([
  ...['--uid', 'u-1', '--name', 'vm', '--namespace', 'ns', '--run-as-nonroot'],
  ...['--kubevirt-share-dir', join(root, 'share'), '--ephemeral-disk-dir', join(root, 'ephemeral')],
  ...['--container-disk-dir', join(root, 'disks'), '--hotplug-disk-dir', join(root, 'hotplug')],
  ...['--kubevirt-private-dir', join(root, 'private')],
]);

test.runIf(process.getuid?.() === 0)(
  'makes the directories with their modes and owners, and again without a change',
  () => {
    ensureDirectories(flags);
    ensureDirectories(flags);
    for (const { path, mode, own } of wantedDirectories(flags)) {
      const found = statSync(path);
      expect([path, found.mode & 0o777, found.uid]).toEqual([path, mode, own ? 107 : 0]);
    }
    expect(existsSync(join(root, 'private/u-1'))).toBe(true);
  },
);

test('a file in the way is named', () => {
  rmSync(root, { recursive: true, force: true });
  writeFileSync(root, '');
  expect(() => ensureDirectories(flags)).toThrow(`failed to prepare ${root}/private/u-1: `);
});
