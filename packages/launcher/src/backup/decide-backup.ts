import type { BackupMetadata } from '@virtwire/vm-model';
import { LauncherError } from '../errors.ts';
import type { BackupIdentity } from './request.ts';
import { renderGoTime } from './request.ts';

/** libvirt's numbers of job types that a backup ends with or runs as. */
export const JOB_TYPE = { unbounded: 2, completed: 3, failed: 4, cancelled: 5 } as const;

/** libvirt's text about a job that was aborted. */
const CANCELED_TEXT = 'Operation canceled';

const isSame = ({ Name, StartTimestamp }: BackupMetadata, { name, startTime }: BackupIdentity): boolean =>
  Name === name && StartTimestamp === startTime;

/**
 * Whether a backup has to be started, or is the one that runs.
 *
 * @throws {LauncherError} `BadRequest` when it has run already or another one runs.
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/storage/backup.go initializeBackupMetadata
 */
export function decideStart(last: BackupMetadata | undefined, wanted: BackupIdentity): 'start' | 'running' {
  if (last?.Name === undefined || last.Name === '') return 'start';
  const { Name, StartTimestamp, EndTimestamp, Completed = false } = last;
  if (EndTimestamp === undefined) {
    if (isSame(last, wanted)) return 'running';
    throw new LauncherError('BadRequest', `backup ${Name} already in progress, need to wait for completion`);
  }
  if (!isSame(last, wanted) || StartTimestamp === undefined) return 'start';
  const times = `started at ${renderGoTime(StartTimestamp)} already executed, finished at ${renderGoTime(EndTimestamp)}`;
  throw new LauncherError('BadRequest', `backup ${Name} that ${times}, completed: ${Completed}`);
}

/**
 * Why a backup cannot be aborted or exported; undefined when it is the one that runs.
 *
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/storage/backup.go checkBackupEligibility
 */
export function findObstacle(running: BackupMetadata | undefined, wanted: BackupIdentity): string | undefined {
  if (running?.Name === undefined || running.Name === '') return 'could not find ongoing backup';
  if (running.StartTimestamp === undefined) return 'backup did not start yet';
  if (!isSame(running, wanted)) return 'requested backup differs from ongoing one';
  return running.Completed === true ? 'backup already completed' : undefined;
}

/** How a backup ended. */
export interface BackupOutcome {
  readonly isFailed: boolean;
  /** Empty when there is nothing to say. */
  readonly message: string;
}

function failureOf(jobType: number, isPull: boolean): BackupOutcome {
  if (jobType === JOB_TYPE.completed) return { isFailed: false, message: '' };
  if (jobType === JOB_TYPE.failed) return { isFailed: true, message: '' };
  if (jobType !== JOB_TYPE.cancelled) return { isFailed: true, message: `unexpected job completion type: ${jobType}` };
  // A pull backup ends by being aborted: whoever pulled has what they wanted.
  return isPull ? { isFailed: false, message: '' } : { isFailed: true, message: 'backup aborted' };
}

/**
 * How a backup ended, by how libvirt's job did.
 *
 * @param errorText libvirt's own words, if it had any.
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/storage/backup.go HandleBackupJobCompletedEvent
 */
export function decideOutcome(mode: string | undefined, jobType: number, errorText: string | undefined): BackupOutcome {
  const isPull = mode === 'Pull';
  const { isFailed, message } = failureOf(jobType, isPull);
  const isQuiet = errorText === undefined || (isPull && errorText === CANCELED_TEXT);
  const parts = [message, isQuiet ? '' : errorText].filter((part) => part !== '');
  const text = parts.join(': ');
  return { isFailed, message: isFailed && text === '' ? 'unknown failure reason' : text };
}
