import { chmod, chown, mkdir, rename, stat, truncate, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path/posix';

import { LauncherError } from '../errors.ts';
import { isMissing } from './go-error.ts';
import type { DiskDeps } from './ports.ts';

/** Whether something is at a path. */
export async function exists(path: string): Promise<boolean> {
  try {
    await stat(path);
    return true;
  } catch (error) {
    if (isMissing(error)) return false;
    throw error;
  }
}

/** Gives a file to QEMU; nothing happens when it has it already, so that an unprivileged launcher can call it too. */
export async function giveToQemu(deps: Pick<DiskDeps, 'qemuUser'>, path: string, mode?: number): Promise<void> {
  if (mode !== undefined) await chmod(path, mode);
  const { uid, gid } = deps.qemuUser;
  const found = await stat(path);
  if (found.uid !== uid || found.gid !== gid) await chown(path, uid, gid);
}

/** Makes the directory of a file. */
export async function makeParent(path: string, mode = 0o755): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode });
}

/** A sparse file of a size: what a migration target takes before the content comes over the wire. */
export async function writeEmptyImage(deps: Pick<DiskDeps, 'qemuUser'>, path: string, size: number): Promise<void> {
  const staging = `${path}.staging`;
  await makeParent(path);
  await writeFile(staging, Buffer.alloc(0));
  await truncate(staging, size);
  await giveToQemu(deps, staging);
  await rename(staging, path);
}

/** Names the volume and the path of a failed step. */
export function diskError(doing: string, caught: unknown): LauncherError {
  return LauncherError.from(caught, 'DiskFailed', doing);
}
