import { parseJson } from '@virtwire/vm-model';
import type { Domain, VmiStatus } from '../model.ts';

type Tracking = NonNullable<VmiStatus['changedBlockTracking']>;
type BackupStatus = NonNullable<Tracking['backupStatus']>;
type BackupVolumes = NonNullable<BackupStatus['volumes']>;

const isSameTime = (a: string | null | undefined, b: string | null | undefined): boolean =>
  Date.parse(a ?? '') === Date.parse(b ?? '');

/** Volumes out of a text in the metadata; undefined when it holds none or cannot be read. */
function volumesOf(text: string | undefined): BackupVolumes | undefined {
  if (text === undefined || text === '') return undefined;
  try {
    const volumes = parseJson(text);
    return Array.isArray(volumes) && volumes.length > 0 ? (volumes as BackupVolumes) : undefined;
  } catch {
    return undefined;
  }
}

/** Without fields that Go leaves out when they are zero. */
function withoutZeros(status: Readonly<Record<string, unknown>>): BackupStatus {
  const known = Object.entries(status).filter(([, value]) => value !== undefined && value !== '' && value !== false);
  return Object.fromEntries(known);
}

/**
 * The status of change tracking with what the launcher knows of the backup that the status names; another backup says
 * nothing about it.
 *
 * @source KubeVirt v1.9.0 pkg/virt-handler/vm.go (updateBackupStatus)
 */
export function trackingWithBackup(tracking: Tracking, domain: Domain): Tracking {
  const { backupStatus } = tracking;
  const backup = domain.Spec.Metadata.KubeVirt.Backup;
  if (backupStatus === undefined || backup === undefined) return tracking;
  const isMeant =
    backup.Name === backupStatus.backupName && isSameTime(backup.StartTimestamp, backupStatus.startTimestamp);
  if (!isMeant) return tracking;
  return {
    ...tracking,
    backupStatus: withoutZeros({
      ...backupStatus,
      completed: backup.Completed,
      failed: backup.Failed,
      startTimestamp: backup.StartTimestamp,
      endTimestamp: backup.EndTimestamp,
      backupMsg: backup.BackupMsg,
      checkpointName: backup.CheckpointName,
      volumes: volumesOf(backup.Volumes) ?? backupStatus.volumes,
      quiesceStatus: backup.QuiesceStatus,
    }),
  };
}
