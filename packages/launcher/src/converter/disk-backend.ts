import type { DomainDisk } from '@virtwire/vm-model';

import { nonEmpty } from './non-empty.ts';

/** Where the bytes of a disk lie: its data store, else its file, else its device. */
export function backendPath(disk: DomainDisk): string {
  const source = disk.Source?.DataStore?.Source ?? disk.Source;
  return nonEmpty(source?.File) ?? source?.Dev ?? '';
}
