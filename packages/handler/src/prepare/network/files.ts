import * as fs from 'node:fs';
import * as path from 'node:path';
import { errnoOf, SafePath } from '@virtwire/host';
import type { NetworkFiles } from './ports.ts';

const QEMU = { uid: 107, gid: 107 } as const;
const FILE_MODE = 0o604;
const DIRECTORY_MODE = 0o750;

/** Files below a directory of the node agent's own. */
export function createNodeFiles(directory: string): NetworkFiles {
  return createFiles(() => {
    fs.mkdirSync(directory, { recursive: true, mode: DIRECTORY_MODE });
    return SafePath.openRoot(directory);
  });
}

/**
 * Files in `/var/run/kubevirt-private` of a launcher. Links on the way (`/var/run`) are followed inside the launcher's
 * root only; a file is replaced, never written through.
 */
export function createPodFiles(rootPath: string): NetworkFiles {
  return createFiles(() => {
    using root = SafePath.openRoot(rootPath);
    using run = root.resolve('var', 'run');
    if (!run.has('kubevirt-private')) {
      using made = run.ensureDirectory('kubevirt-private', DIRECTORY_MODE);
      made.chown(QEMU.uid, QEMU.gid);
    }
    return run.join('kubevirt-private');
  });
}

function createFiles(open: () => SafePath): NetworkFiles {
  return {
    read(file) {
      try {
        using directory = open();
        using opened = directory.join(file);
        return opened.readFile().toString('utf8');
      } catch (caught) {
        if (errnoOf(caught) === 'ENOENT') return undefined;
        throw caught;
      }
    },
    write(file, text) {
      using directory = open();
      const parent = path.dirname(file);
      using target = parent === '.' ? directory.join('') : directory.ensureDirectory(parent, DIRECTORY_MODE);
      target.replaceFile(path.basename(file), { content: text, mode: FILE_MODE, owner: QEMU });
    },
    remove(file) {
      try {
        using directory = open();
        using parent = directory.join(path.dirname(file));
        // By the descriptor of the parent: rm removes a link, not what it points to.
        fs.rmSync(parent.childPath(path.basename(file)), { recursive: true, force: true });
      } catch (caught) {
        if (errnoOf(caught) !== 'ENOENT') throw caught;
      }
    },
  };
}
