import { rmSync } from 'node:fs';
import { readMounts } from '@virtwire/host';
import { VirtwireError } from '../errors.ts';

/**
 * Removes a directory with everything in it, but never through a mount: what is mounted there belongs to others.
 *
 * @throws {VirtwireError} `BadState` that names the mount.
 */
export function removeDirectory(path: string): void {
  const mounted = readMounts().find(({ mountPoint }) => mountPoint === path || mountPoint.startsWith(`${path}/`));
  if (mounted !== undefined) {
    throw new VirtwireError('BadState', `${path} is kept: ${mounted.mountPoint} is still mounted there`);
  }
  rmSync(path, { recursive: true, force: true });
}
