import type { BackupManager } from '../backup/manager.ts';
import type { Clock } from '../config/clock.ts';
import { within } from '../config/within.ts';
import type { MemoryDumper } from '../domain/memory-dump.ts';
import type { MigrationSource } from '../migration/source.ts';

/** libvirt returns from a migration right after QEMU's end. */
const MIGRATION_RESULT_MS = 5_000;

/** What goes on for long in the background of a VM. */
export interface LongWorkDeps {
  readonly clock: Clock;
  readonly backups: Pick<BackupManager, 'endWithVm'>;
  readonly memoryDumper: Pick<MemoryDumper, 'settle'>;
  readonly source: () => Pick<MigrationSource, 'isActive' | 'settled'>;
}

/**
 * Waits, when the VM has ended, until it is noted what became of the backup, the dump and the migration that its end cut
 * off: for 10 s at most, and not at all when there was none. A handler that hears of the end may delete the domain at
 * once, and of a domain that is gone nothing more can be told.
 */
export async function settleLongWork({ clock, backups, memoryDumper, source }: LongWorkDeps): Promise<void> {
  backups.endWithVm();
  const migrated = source().isActive() ? within(clock, MIGRATION_RESULT_MS, source().settled()) : undefined;
  await Promise.all([migrated, memoryDumper.settle()]);
}
