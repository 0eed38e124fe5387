import { readFile, rename, rm, writeFile } from 'node:fs/promises';
import type { Logger } from '@virtwire/telemetry';

/** A job of libvirt's, as its status file has it when nothing else is known of the job. */
const LOST_BACKUP = /<job type='none' async='backup'[^<>]*\/>/;
const NO_JOB = "<job type='none' async='none'/>";
/** What a backup that has begun is described by. */
const BACKUP_DESCRIPTION = '<domainbackup';

/**
 * A domain's status without a backup that had not begun when the daemon died.
 *
 * libvirt notes the job before it prepares the images, and the backup when they are ready. A daemon that dies in between
 * comes back with a job of which it knows nothing more: nothing ends it, and no other backup, migration or dump of the
 * VM gets through.
 *
 * @param xml libvirt's status file.
 * @returns undefined when there is nothing to mend.
 * @source libvirt 9.0 qemu_process.c qemuProcessRecoverJob, qemu_backup.c qemuBackupBegin
 */
export function withoutLostBackup(xml: string): string | undefined {
  if (xml.includes(BACKUP_DESCRIPTION) || !LOST_BACKUP.test(xml)) return undefined;
  return xml.replace(LOST_BACKUP, NO_JOB);
}

/**
 * Mends a domain's status file while no daemon runs that could read or write it. Never fails: without the file, or with
 * one that cannot be written, the daemon finds what its predecessor left.
 */
export async function healDomainStatus(path: string, log: Logger): Promise<void> {
  // The daemon reads all that ends in `.xml`.
  const fresh = `${path}.healed`;
  try {
    const healed = withoutLostBackup(await readFile(path, 'utf8'));
    if (healed === undefined) return;
    await writeFile(fresh, healed, { mode: 0o600 });
    await rename(fresh, path);
    log.warn('libvirt died as it was to begin a backup, its job is taken back');
  } catch (caught) {
    log.debug({ reason: caught }, 'the status of the domain was left as it is');
    await rm(fresh, { force: true }).catch(() => undefined);
  }
}
