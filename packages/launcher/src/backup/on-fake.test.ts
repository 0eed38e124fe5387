import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { unwrap, vmiRequest } from '@virtwire/shared-proto';
import { renderVmiJson } from '@virtwire/vm-model';
import type { BackupMetadata } from '@virtwire/vm-model';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { eventually, startLauncherOnFake } from '../testing/launcher-on-fake.ts';
import type { LauncherOnFake } from '../testing/launcher-on-fake.ts';

let target: string;
beforeEach(() => {
  target = mkdtempSync(join(tmpdir(), 'virtwire-backup-'));
});
afterEach(() => rmSync(target, { recursive: true, force: true }));

const options = (more: Readonly<Record<string, unknown>> = {}): Buffer =>
  Buffer.from(
    JSON.stringify({
      ...{ cmd: 'Start', mode: 'Push', backupName: 'b1', backupStartTime: '2026-01-01T00:00:00Z' },
      ...{ targetPath: target, skipQuiesce: true, ...more },
    }),
  );

/** A launcher whose VM runs, with a backup that ends when the test says so. */
async function startBackup(): Promise<LauncherOnFake & { readonly vmiWire: ReturnType<typeof vmiRequest>['vmi'] }> {
  const launcher = await startLauncherOnFake();
  launcher.startQemu();
  unwrap(await launcher.client.syncVirtualMachine(launcher.request));
  launcher.daemon.domain(launcher.domainName).behaviour = { jobDurationMs: 'untilLever' };
  const status = { ...launcher.vmi.status, changedBlockTracking: { state: 'Enabled' } };
  const { vmi: vmiWire } = vmiRequest(renderVmiJson({ ...launcher.vmi, status }));
  unwrap(await launcher.client.backupVirtualMachine({ vmi: vmiWire, options: options() }));
  return { ...launcher, vmiWire };
}

/** The event that tells of the backup's end. */
function endOf({ events }: LauncherOnFake): Promise<{ readonly type: string; readonly backup: BackupMetadata }> {
  return eventually('the end of the backup', () => {
    const event = events.find(({ domain }) => domain.Spec.Metadata.KubeVirt.Backup?.Completed === true);
    const backup = event?.domain.Spec.Metadata.KubeVirt.Backup;
    return event === undefined || backup === undefined ? undefined : { type: event.type, backup };
  });
}

test('the handler hears of the end of a backup, and that it went well', async () => {
  await using launcher = await startBackup();
  launcher.daemon.domain(launcher.domainName).job?.complete();
  const { type, backup } = await endOf(launcher);
  expect(type).toBe('ADDED');
  expect(backup).toMatchObject({ Name: 'b1', CheckpointName: 'b1-2026-01-01_00-00-00', QuiesceStatus: 'Skipped' });
  expect(backup.Failed ?? false).toBe(false);
});

test('why a backup failed', async () => {
  await using launcher = await startBackup();
  launcher.daemon.domain(launcher.domainName).job?.fail('No space left on device');
  expect((await endOf(launcher)).backup).toMatchObject({ Failed: true, BackupMsg: 'No space left on device' });
});

test('an aborted push is a failed backup', async () => {
  await using launcher = await startBackup();
  const abort = { vmi: launcher.vmiWire, options: options({ cmd: 'Abort' }) };
  unwrap(await launcher.client.backupVirtualMachine(abort));
  const { backup } = await endOf(launcher);
  expect(backup).toMatchObject({ Failed: true, BackupMsg: expect.stringMatching(/^backup aborted/) as string });
});

test('a backup that ended while libvirt could not be reached is told as soon as it can be', async () => {
  await using launcher = await startBackup();
  const { daemon, domainName } = launcher;
  const { job } = daemon.domain(domainName);
  await daemon.crash();
  job?.complete();
  await daemon.start();
  const { type, backup } = await endOf(launcher);
  expect(type).toBe('MODIFIED');
  expect(backup.Failed ?? false).toBe(false);
});
