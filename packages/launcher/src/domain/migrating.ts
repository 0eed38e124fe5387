import type { MetadataCache } from '../metadata/cache.ts';

/** True while the VM is on its way to another node. */
export function isMigrating({ migration }: Pick<MetadataCache, 'migration'>): boolean {
  const { StartTimestamp, EndTimestamp } = migration.load() ?? {};
  return StartTimestamp !== undefined && EndTimestamp === undefined;
}
