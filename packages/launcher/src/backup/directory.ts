import { mkdir, stat } from 'node:fs/promises';
import { dirname } from 'node:path/posix';
import { goFileError } from '../disks/go-error.ts';

/** The first part of a path that is no directory, or cannot be made one. */
async function findObstacle(dir: string): Promise<string> {
  const parent = dirname(dir);
  if (parent === dir) return dir;
  const found = await stat(parent).catch(() => undefined);
  if (found === undefined) return findObstacle(parent);
  return found.isDirectory() ? dir : parent;
}

/**
 * Makes a directory and those above it.
 *
 * @throws {Error} in Go's words, which name where it failed: `mkdir /a: not a directory`
 */
export async function makeDirectories(dir: string): Promise<void> {
  try {
    await mkdir(dir, { recursive: true, mode: 0o755 });
  } catch (caught) {
    const obstacle = await findObstacle(dir);
    const isFile = await stat(obstacle).then(
      (found) => !found.isDirectory(),
      () => false,
    );
    throw isFile
      ? new Error(`mkdir ${obstacle}: not a directory`, { cause: caught })
      : goFileError(caught, 'mkdir', obstacle);
  }
}
