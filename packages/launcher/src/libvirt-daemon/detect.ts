import { accessSync, constants } from 'node:fs';
import { join } from 'node:path';
import { LauncherError } from '../errors.ts';

/** The libvirt daemon of this image and what belongs to it. */
export interface LibvirtDaemon {
  readonly name: 'virtqemud' | 'libvirtd';
  readonly path: string;
  /** File name of its socket in the run directory. */
  readonly socketName: string;
  /** Undefined when the image has none: QEMU then writes its logs itself. */
  readonly virtlogdPath: string | undefined;
}

const SBIN_DIRS = ['/usr/sbin', '/usr/local/sbin', '/sbin'];

function findExecutable(name: string, dirs: readonly string[]): string | undefined {
  return dirs
    .map((dir) => join(dir, name))
    .find((path) => {
      try {
        accessSync(path, constants.X_OK);
        return true;
      } catch {
        return false;
      }
    });
}

/**
 * Finds the modular daemon, or else the monolithic one (Debian 12 has only that).
 *
 * @throws {LauncherError} `LibvirtUnavailable` when there is neither
 */
export function detectLibvirtDaemon(dirs: readonly string[] = SBIN_DIRS): LibvirtDaemon {
  const virtlogdPath = findExecutable('virtlogd', dirs);
  const virtqemud = findExecutable('virtqemud', dirs);
  if (virtqemud !== undefined)
    return { name: 'virtqemud', path: virtqemud, socketName: 'virtqemud-sock', virtlogdPath };
  const libvirtd = findExecutable('libvirtd', dirs);
  if (libvirtd !== undefined) return { name: 'libvirtd', path: libvirtd, socketName: 'libvirt-sock', virtlogdPath };
  throw new LauncherError('LibvirtUnavailable', `neither virtqemud nor libvirtd found in ${dirs.join(', ')}`);
}
