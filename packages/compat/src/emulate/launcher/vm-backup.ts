import { type BackupMetadata, renderTime, type Vmi } from '@virtwire/vm-model';

import type { Fields } from '../schema/release-schema.ts';
import { ProcessCrash, Refusal } from './outcome.ts';
import type { Vm } from './vm.ts';

/** What Export needs beside a running backup, in the order of the checks. */
const EXPORT_NEEDS: readonly (readonly [key: string, text: string])[] = [
  ['exportServerAddr', "backup export server address wasn't provided"],
  ['exportServerName', "backup export server name wasn't provided"],
  ['backupName', "backup name wasn't provided"],
  ['backupStartTime', "backup start time wasn't provided"],
  ['backupCert', "backup certificate wasn't provided"],
  ['backupKey', "backup key wasn't provided"],
  ['caCert', "backup export server CA cert wasn't provided"],
];

/** @throws {Refusal} with the prefix unless changed block tracking is on. */
export function requireBlockTracking(vmi: Vmi, prefix: string): void {
  if (vmi.status?.changedBlockTracking?.state === 'Enabled') return;
  throw new Refusal(`${prefix} ChangedBlockTracking is not enabled`);
}

/** @source wire.md 6 BackupVirtualMachine, 11 */
export function runBackup(vm: Vm, options: Fields | null): void {
  if (options === null) throw new ProcessCrash('BackupVirtualMachine with options null');
  const { cmd } = options;
  if (cmd === 'Start') startBackup(vm, options);
  else if (cmd === 'Export') exportBackup(vm, options);
  else if (cmd === 'Abort') abortBackup(vm, options);
  else throw new Refusal('cmd unsupported, backup command only supports start or abort');
}

function startBackup(vm: Vm, options: Fields): void {
  const { mode, targetPath, backupName, backupStartTime } = options;
  if (mode !== 'Push' && mode !== 'Pull') throw new Refusal('unknown backup mode: only Push and Pull are supported');
  if (typeof targetPath !== 'string' || targetPath === '') throw new Refusal("backup targetPath wasn't provided");
  if (typeof backupStartTime !== 'string') throw new ProcessCrash('BackupVirtualMachine without backupStartTime');
  const name = text(backupName);
  const { Backup, Migration } = vm.metadata;
  if (Migration !== undefined && Migration.EndTimestamp === undefined) {
    throw new Refusal('failed to do backup, VMI is currently during migration');
  }
  const isSame = Backup?.Name === name && Backup.StartTimestamp === backupStartTime;
  if (Backup !== undefined && Backup.EndTimestamp === undefined) {
    if (isSame) return;
    throw new Refusal(`backup ${Backup.Name ?? ''} already in progress, need to wait for completion`);
  }
  if (isSame) throw alreadyOver(Backup);
  vm.metadata = { ...vm.metadata, Backup: { Name: name, Mode: mode, StartTimestamp: backupStartTime } };
  vm.deps.onEvent('MODIFIED');
  if (mode === 'Push') vm.deps.after(1, () => endBackup(vm, { Completed: true }));
}

function endBackup(vm: Vm, result: Partial<BackupMetadata>): void {
  const EndTimestamp = renderTime(vm.deps.now());
  vm.metadata = { ...vm.metadata, Backup: { ...vm.metadata.Backup, EndTimestamp, ...result } };
  // From v1.8 on the end of a backup job is an ADDED event (releases.json eras.addedDomainEvents).
  vm.deps.onEvent('ADDED');
}

function exportBackup(vm: Vm, options: Fields): void {
  if (options['mode'] !== 'Pull') throw new Refusal('can only export Pull mode backup');
  const missing = EXPORT_NEEDS.find(([key]) => options[key] === undefined || options[key] === '');
  if (missing !== undefined) throw new Refusal(missing[1]);
  requireOngoing(vm, options, '');
}

function abortBackup(vm: Vm, options: Fields): void {
  requireOngoing(vm, options, 'failed to abort backup: ');
  endBackup(vm, { Failed: true, BackupMsg: 'aborted' });
}

function requireOngoing(vm: Vm, options: Fields, prefix: string): void {
  const { Backup } = vm.metadata;
  if (Backup === undefined) throw new Refusal(`${prefix}could not find ongoing backup`);
  if (Backup.Name !== text(options['backupName'])) {
    throw new Refusal(`${prefix}requested backup differs from ongoing one`);
  }
  if (Backup.EndTimestamp !== undefined) throw new Refusal(`${prefix}backup already completed`);
}

function alreadyOver(backup: BackupMetadata): Refusal {
  const { Name = '', StartTimestamp = '', EndTimestamp = '', Completed = false } = backup;
  const end = `finished at ${EndTimestamp}, completed: ${Completed}`;
  return new Refusal(`backup ${Name} that started at ${StartTimestamp} already executed, ${end}`);
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
