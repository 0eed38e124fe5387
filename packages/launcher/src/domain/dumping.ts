import type { MetadataCache } from '../metadata/cache.ts';

/** True while the guest's memory is written to a file. */
export function isDumping({ memoryDump }: Pick<MetadataCache, 'memoryDump'>): boolean {
  const { StartTimestamp, EndTimestamp } = memoryDump.load() ?? {};
  return StartTimestamp !== undefined && EndTimestamp === undefined;
}
