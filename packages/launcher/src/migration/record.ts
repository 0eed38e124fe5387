import { renderTime } from '@virtwire/vm-model';
import type { MigrationMetadata } from '@virtwire/vm-model';
import type { Logger } from '@virtwire/telemetry';
import type { Clock } from '../config/clock.ts';
import { isMigrating } from '../domain/migrating.ts';
import { LauncherError } from '../errors.ts';
import type { MetadataCache } from '../metadata/cache.ts';
import type { MigrationMode } from './decide-limits.ts';

/** How far an abort has come, as the metadata says it. */
export type AbortStatus = 'Aborting' | 'Succeeded' | 'Failed';

/** What the launcher notes of the migration of its VM; all of it reaches the handler with the domain's metadata. */
export interface MigrationRecord {
  /**
   * Notes the start of a migration.
   *
   * @returns false when this migration runs already.
   * @throws {LauncherError} `MigrationFailed` when it ran before
   */
  start(uid: string): boolean;
  mode(): MigrationMode;
  setMode(mode: MigrationMode): void;
  isAborting(): boolean;
  /** An abort is under way or done. */
  hasAbort(): boolean;
  setAbort(status: AbortStatus): void;
  /** Notes the end, once. @param failure why it failed; undefined when the VM is on its target. */
  finish(uid: string, failure: string | undefined, log: Logger): void;
  /** A migration has begun and not ended. */
  isRunning(): boolean;
  /** Leaves a mark that somebody asked, which older handlers look for. */
  touch(): void;
}

/** As Go prints a time: with the fraction that there is. */
function goTime(epochMs: number): string {
  const [date = '', time = ''] = new Date(epochMs).toISOString().slice(0, 23).split('T');
  return `${date} ${time.replace(/\.?0+$/, '')} +0000 UTC`;
}

/**
 * Creates the record of a launcher.
 *
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/live-migration-source.go initializeMigrationMetadata
 */
export function createMigrationRecord(metadata: Pick<MetadataCache, 'migration'>, clock: Clock): MigrationRecord {
  const cell = metadata.migration;
  let endedAtMs: number | undefined;

  function refuse(last: MigrationMetadata): never {
    const { UID = '', EndTimestamp = '', Failed = false, AbortStatus = '' } = last;
    const ended = goTime(endedAtMs ?? Date.parse(EndTimestamp));
    const text = `migration job ${UID} already executed, finished at ${ended}, failed: ${String(Failed)}`;
    throw new LauncherError('MigrationFailed', `${text}, abortStatus: ${AbortStatus}`);
  }

  return {
    start(uid) {
      const last = cell.load();
      if (last !== undefined && (last.UID ?? '') === uid && last.StartTimestamp !== undefined) {
        return last.EndTimestamp === undefined ? false : refuse(last);
      }
      endedAtMs = undefined;
      cell.store({ UID: uid, StartTimestamp: renderTime(clock.now()), Mode: 'PreCopy' });
      return true;
    },
    mode: () => (cell.load()?.Mode as MigrationMode | undefined) ?? 'PreCopy',
    setMode: (mode) => cell.update((migration) => ({ ...migration, Mode: mode })),
    isAborting: () => cell.load()?.AbortStatus === 'Aborting',
    hasAbort: () => {
      const status = cell.load()?.AbortStatus ?? '';
      return status !== '' && status !== 'Failed';
    },
    setAbort: (status) => cell.update((migration) => ({ ...migration, AbortStatus: status })),
    finish(uid, failure, log) {
      const current = cell.load();
      if (current?.UID !== uid || current.EndTimestamp !== undefined) {
        log.error(`migration ${uid} has a result already`);
        return;
      }
      endedAtMs = clock.now();
      cell.update((migration) => ({
        ...migration,
        EndTimestamp: renderTime(clock.now()),
        ...(failure === undefined ? {} : { Failed: true, FailureReason: failure }),
      }));
    },
    isRunning: () => isMigrating(metadata),
    touch: () => cell.update((migration) => migration),
  };
}
