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

function trackedRequest({ vmi }: LauncherOnFake): ReturnType<typeof vmiRequest>['vmi'] {
  const status = { ...vmi.status, changedBlockTracking: { state: 'Enabled' } };
  return vmiRequest(renderVmiJson({ ...vmi, status })).vmi;
}

/** A launcher whose VM runs, with a backup that ends when the test says so. */
async function startBackup(
  more: Readonly<Record<string, unknown>> = {},
): Promise<LauncherOnFake & { readonly vmiWire: ReturnType<typeof trackedRequest> }> {
  const launcher = await startLauncherOnFake();
  launcher.startQemu();
  unwrap(await launcher.client.syncVirtualMachine(launcher.request));
  launcher.daemon.domain(launcher.domainName).behaviour = { jobDurationMs: 'untilLever' };
  const vmiWire = trackedRequest(launcher);
  unwrap(await launcher.client.backupVirtualMachine({ vmi: vmiWire, options: options(more) }));
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

test('a backup of which libvirt could not tell that it began is ended, and the next may begin', async () => {
  await using launcher = await startLauncherOnFake();
  const { client, daemon, domainName } = launcher;
  launcher.startQemu();
  unwrap(await client.syncVirtualMachine(launcher.request));
  daemon.domain(domainName).behaviour = { jobDurationMs: 'untilLever' };
  daemon.faults.add({ kind: 'cut', when: 'after' }, { procedure: 'DOMAIN_BACKUP_BEGIN' });
  const vmiWire = trackedRequest(launcher);
  const failed = await client.backupVirtualMachine({ vmi: vmiWire, options: options({ mode: 'Pull' }) });
  expect(failed.ok).toBe(false);
  await eventually('its end', () => daemon.callsOf('DOMAIN_ABORT_JOB').length === 1);
  await eventually('word of it', () =>
    launcher.lines.some(({ msg }) => String(msg).startsWith('Domain Job Completed')),
  );
  unwrap(await client.backupVirtualMachine({ vmi: vmiWire, options: options({ backupName: 'b2' }) }));
  daemon.domain(domainName).job?.complete();
  const { backup } = await endOf(launcher);
  expect(backup).toMatchObject({ Name: 'b2', Completed: true });
  expect(backup.Failed ?? false).toBe(false);
  const told = launcher.events.map(({ domain }) => domain.Spec.Metadata.KubeVirt.Backup);
  expect(told.filter((one) => one?.Completed === true).every((one) => one?.Name === 'b2')).toBe(true);
});

test.each([
  ['Push', 'backup aborted'],
  ['Pull', 'the VM ended before its backup'],
])(
  'FM-9.5 whoever hears that the VM has ended hears in the same event that its %s backup failed',
  async (mode, why) => {
    await using launcher = await startBackup({ mode });
    launcher.daemon.domain(launcher.domainName).killQemu();
    const off = await eventually('Shutoff', () =>
      launcher.events.find(({ domain }) => domain.Status.Reason === 'Crashed'),
    );
    expect(off.domain.Spec.Metadata.KubeVirt.Backup).toMatchObject({ Completed: true, Failed: true, BackupMsg: why });
  },
);

test('a backup that went well before its VM ended stays one that went well', async () => {
  await using launcher = await startBackup();
  const domain = launcher.daemon.domain(launcher.domainName);
  domain.job?.complete();
  const { backup } = await endOf(launcher);
  domain.killQemu();
  const off = await eventually('Shutoff', () =>
    launcher.events.find((event) => event.domain.Status.Reason === 'Crashed'),
  );
  expect(off.domain.Spec.Metadata.KubeVirt.Backup).toEqual(backup);
});
