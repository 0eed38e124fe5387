import type {
  AccessCredentialMetadata,
  BackupMetadata,
  GracePeriodMetadata,
  KubeVirtMetadata,
  MemoryDumpMetadata,
  MigrationMetadata,
} from '@virtwire/vm-model';

/** One piece of metadata about the VM. Undefined until somebody wrote it. */
export interface MetadataCell<T> {
  load(): T | undefined;
  /** Writes and notifies, whether or not the value changed. */
  store(value: T): void;
  /** Writes without a notification; undefined makes it unwritten again. */
  set(value: T | undefined): void;
  /** Replaces the value by what `change` returns, and notifies if a field differs. The cell counts as written either way. */
  update(change: (current: T) => T): void;
}

/**
 * What the launcher knows about its VM beside libvirt: kept in memory only, shown in every Domain document.
 *
 * @source KubeVirt v1.9.0 pkg/virt-launcher/metadata
 */
export interface MetadataCache {
  readonly uid: MetadataCell<string>;
  readonly gracePeriod: MetadataCell<GracePeriodMetadata>;
  readonly migration: MetadataCell<MigrationMetadata>;
  readonly backup: MetadataCell<BackupMetadata>;
  readonly accessCredential: MetadataCell<AccessCredentialMetadata>;
  readonly memoryDump: MetadataCell<MemoryDumpMetadata>;
  readonly guestPanicHandled: MetadataCell<boolean>;
  /** True when something changed since the last call; asking takes the notification. */
  takeNotification(): boolean;
  /** Called for each change that raises a notification while none is pending. One listener. */
  onNotify(listener: () => void): void;
  /** The cells that were written, in the form of the Domain document. */
  snapshot(): KubeVirtMetadata;
}

function sameFields(a: unknown, b: unknown): boolean {
  if (Object.is(a, b)) return true;
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false;
  const before = a as Record<string, unknown>;
  const after = b as Record<string, unknown>;
  const keys = new Set([...Object.keys(before), ...Object.keys(after)]);
  return [...keys].every((key) => Object.is(before[key], after[key]));
}

function createCell<T>(zero: T, notify: () => void): MetadataCell<T> {
  let value: T | undefined;
  return {
    load: () => value,
    store(next) {
      value = next;
      notify();
    },
    set(next) {
      value = next;
    },
    update(change) {
      const before = value ?? zero;
      value = change(before);
      if (!sameFields(before, value)) notify();
    },
  };
}

/** Creates an empty cache. */
export function createMetadataCache(): MetadataCache {
  let pending = false;
  let listener: () => void = () => undefined;
  const notify = (): void => {
    if (pending) return;
    pending = true;
    listener();
  };
  const cells = {
    uid: createCell('', notify),
    gracePeriod: createCell<GracePeriodMetadata>({}, notify),
    migration: createCell<MigrationMetadata>({}, notify),
    backup: createCell<BackupMetadata>({}, notify),
    accessCredential: createCell<AccessCredentialMetadata>({}, notify),
    memoryDump: createCell<MemoryDumpMetadata>({}, notify),
    guestPanicHandled: createCell(false, notify),
  };
  return {
    ...cells,
    takeNotification() {
      const was = pending;
      pending = false;
      return was;
    },
    onNotify(next) {
      listener = next;
      if (pending) listener();
    },
    snapshot: () => ({
      UID: cells.uid.load(),
      GracePeriod: cells.gracePeriod.load(),
      Migration: cells.migration.load(),
      Backup: cells.backup.load(),
      AccessCredential: cells.accessCredential.load(),
      MemoryDump: cells.memoryDump.load(),
    }),
  };
}
