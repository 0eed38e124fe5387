import * as fs from 'node:fs';
import { HostError } from '../errors.ts';

/** One line of `/proc/<pid>/mountinfo`. */
export interface MountEntry {
  readonly id: number;
  readonly parentId: number;
  /** `major:minor` of the filesystem's device. */
  readonly device: string;
  /** Directory of the filesystem that is mounted here. */
  readonly root: string;
  readonly mountPoint: string;
  readonly options: readonly string[];
  readonly fsType: string;
  readonly source: string;
  readonly superOptions: readonly string[];
}

/** Reads the mount table that a process sees; `self` by default. */
export function readMounts(pid: number | 'self' = 'self'): MountEntry[] {
  try {
    return parseMountInfo(fs.readFileSync(`/proc/${pid}/mountinfo`, 'utf8'));
  } catch (caught) {
    throw HostError.from(caught, 'Syscall', `read the mounts of process ${pid}`);
  }
}

/** Reads the lines of a mountinfo file; octal escapes are undone. */
export function parseMountInfo(text: string): MountEntry[] {
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => {
      const fields = line.split(' ');
      const dash = fields.indexOf('-', 6);
      const at = (i: number): string => unescape(fields[i] ?? '');
      return {
        id: Number(at(0)),
        parentId: Number(at(1)),
        device: at(2),
        root: at(3),
        mountPoint: at(4),
        options: at(5).split(','),
        fsType: at(dash + 1),
        source: at(dash + 2),
        superOptions: at(dash + 3).split(','),
      };
    });
}

/** True if something is mounted at exactly this path, links not followed. `/` always is. */
export function isMountPoint(path: string, mounts: readonly MountEntry[] = readMounts()): boolean {
  return path === '/' || mounts.some((m) => m.mountPoint === path);
}

function unescape(text: string): string {
  return text.replace(/\\([0-7]{3})/g, (_all, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));
}
