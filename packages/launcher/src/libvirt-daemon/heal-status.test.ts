import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createLogger } from '@virtwire/telemetry';
import { expect, test } from 'vitest';
import { healDomainStatus, withoutLostBackup } from './heal-status.ts';

const log = createLogger('virt-launcher', { destination: { write: () => undefined } });
const LOST = "  <job type='none' async='backup' flags='0x0' asyncStarted='1796013624073'/>\n";
const status = (job: string, more = ''): string => `<domstatus state='running' pid='85'>\n${job}${more}</domstatus>\n`;
const IDLE = status("  <job type='none' async='none'/>\n");

test('a backup that the daemon died over before it began is no job any more', () => {
  expect(withoutLostBackup(status(LOST))).toBe(IDLE);
});

test.each([
  ['no job', IDLE],
  ['a backup that runs', status(LOST, "  <backups>\n    <domainbackup mode='pull'/>\n  </backups>\n")],
  ['a dump', status("  <job type='none' async='dump' flags='0x10'/>\n")],
  ['a migration', status("  <job type='none' async='migration out' phase='perform3'>\n  </job>\n")],
  ['nothing that can be read', ''],
])('a status with %s stays as it is', (_title, xml) => {
  expect(withoutLostBackup(xml)).toBeUndefined();
});

test('the file is exchanged as a whole, is nobody else’s to read, and leaves nothing beside it', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'virtwire-status-'));
  const path = join(dir, 'ns_vm.xml');
  try {
    await healDomainStatus(path, log);
    expect(readdirSync(dir)).toEqual([]);
    writeFileSync(path, status(LOST));
    await healDomainStatus(path, log);
    expect(readFileSync(path, 'utf8')).toBe(IDLE);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(readdirSync(dir)).toEqual(['ns_vm.xml']);
  } finally {
    rmSync(dir, { recursive: true });
  }
});
