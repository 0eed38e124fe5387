import { execFileSync } from 'node:child_process';
import { mkdtempSync, readlinkSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { installHookClient } from './install-hook.ts';

test('takes the place of the image’s hook with the first client that can be run', () => {
  const dir = mkdtempSync(join(tmpdir(), 'virtwire-install-'));
  try {
    const plain = join(dir, 'plain');
    const client = join(dir, 'client');
    writeFileSync(plain, '');
    writeFileSync(client, '', { mode: 0o755 });
    installHookClient(dir, [join(dir, 'missing'), plain, client]);
    installHookClient(dir, [client]);
    expect(readlinkSync(join(dir, 'hooks/qemu'))).toBe(client);
    expect(() => installHookClient(dir, [plain])).toThrow(`no executable libvirt-hook-client in ${dir}`);
    expect(() => installHookClient(plain, [client])).toThrow(`failed to install ${plain}/hooks/qemu: `);
  } finally {
    rmSync(dir, { recursive: true });
  }
});

test('there is a client where the sources are', () => {
  const dir = mkdtempSync(join(tmpdir(), 'virtwire-install-'));
  try {
    installHookClient(dir);
    expect(readlinkSync(join(dir, 'hooks/qemu'))).toMatch(/\/libvirt-hook-client$/);
  } finally {
    rmSync(dir, { recursive: true });
  }
});

test.each([
  ['prepare', 'begin', '-'],
  ['start', 'begin', '-'],
  ['release', 'end', 'shutdown'],
  ['release', 'end', 'migrated'],
  ['migrate', 'end', '-'],
])('%s %s %s is none of its business, or done at once', (...operation) => {
  const client = join(import.meta.dirname, '../../scripts/libvirt-hook-client');
  expect(execFileSync(client, ['vm', ...operation], { encoding: 'utf8', input: '<domain/>' })).toBe('');
});
