import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import type { LauncherErrorCode } from './errors.ts';

const README = readFileSync(join(import.meta.dirname, '../README.md'), 'utf8');

test('the example runs and prints a domain', async () => {
  const code = /```ts\n([^]*?)```/.exec(README)?.[1] ?? '';
  // Inside the package, so that the packages that it names are found.
  const folder = mkdtempSync(join(import.meta.dirname, '../.readme-'));
  try {
    writeFileSync(join(folder, 'example.ts'), code);
    const args = ['-C', '@virtwire/source', join(folder, 'example.ts')];
    const { stdout } = await promisify(execFile)(process.execPath, args);
    expect(stdout).toMatch(/^<domain type=/);
    expect(stdout).toContain('<name>default_vm</name>');
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('the README lists exactly the codes of the errors', () => {
  const codes: Record<LauncherErrorCode, true> = {
    BackupFailed: true,
    BadFlag: true,
    BadRequest: true,
    Busy: true,
    CmdServerFailed: true,
    ConvertFailed: true,
    CredentialsFailed: true,
    DirectoryFailed: true,
    DiskFailed: true,
    DomainNotFound: true,
    DomainTimeout: true,
    EarlyExit: true,
    GuestCommandFailed: true,
    HookFailed: true,
    IommuFailed: true,
    LibvirtUnavailable: true,
    MigrationFailed: true,
    NetworkFailed: true,
    SimulatedCrash: true,
    StandaloneFailed: true,
    StatsUnavailable: true,
  };
  const listed = [...README.matchAll(/^\| `([A-Z]\w+)` +\|/gm)].map(([, code]) => code);
  expect(listed).toEqual(Object.keys(codes));
});
