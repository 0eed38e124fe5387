import { basename } from 'node:path';
import { errnoOf, HostError, SafePath } from '@virtwire/host';

const RUN_LINK = '/var/run/';
const QEMU = { uid: 107, gid: 107 } as const;

/** The launcher's file tree, as far as ownership needs it. Paths are absolute inside it; no link is followed. */
export interface LauncherRoot {
  /** Gives a file to the qemu user, unless it is so. @throws an error with errno `ENOENT` when it is missing. */
  chownToQemu(path: string): void;
  chmod(path: string, mode: number): void;
  /** Names in a directory; empty when there is none. */
  list(directory: string): readonly string[];
}

/** @param rootPath `/proc/<launcher pid>/root`. */
export function openLauncherRoot(rootPath: string): LauncherRoot {
  const open = (path: string): SafePath => {
    using root = SafePath.openRoot(rootPath);
    try {
      if (!path.startsWith(RUN_LINK)) return root.join(path);
      // `/var/run` is a link in the images: it is followed inside the root, what comes after it is not.
      using run = root.resolve(RUN_LINK);
      return run.join(path.slice(RUN_LINK.length));
    } catch (caught) {
      if (errnoOf(caught) !== 'ENOENT') throw caught;
      const where = `${basename(path)} for path root: ${rootPath}, relative: ${path}`;
      const message = `failed opening ${where}: no such file or directory`;
      throw new HostError('Syscall', message, { errno: 'ENOENT', cause: caught });
    }
  };
  return {
    chownToQemu(path) {
      using file = open(path);
      file.ensureOwner(QEMU.uid, QEMU.gid);
    },
    chmod(path, mode) {
      using file = open(path);
      file.chmod(mode);
    },
    list(directory) {
      try {
        using opened = open(directory);
        return opened.names().sort();
      } catch (caught) {
        if (errnoOf(caught) === 'ENOENT') return [];
        throw caught;
      }
    },
  };
}
