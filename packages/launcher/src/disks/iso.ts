import { readdir, rename } from 'node:fs/promises';

import { giveToQemu, makeParent } from './files.ts';
import { goFileError } from './go-error.ts';
import type { DiskDeps } from './ports.ts';

const TOOL = 'xorrisofs';
const TIMEOUT_MS = 10_000;

/** What making ISO images needs. */
export type IsoDeps = Pick<DiskDeps, 'tools' | 'qemuUser'>;

/**
 * Makes an ISO image of a directory, in place at once: nobody sees half an image.
 *
 * @source KubeVirt v1.9.0 pkg/cloud-init/cloud-init.go, defaultIsoFunc
 */
export async function writeDirectoryIso(deps: IsoDeps, image: string, label: string, dir: string): Promise<void> {
  const options = ['-volid', label, '-joliet', '-rock', '-partition_cyl_align', 'on'];
  await writeIso(deps, image, [...options, dir]);
}

/**
 * Makes an ISO image of the direct entries of a directory, links followed.
 *
 * @throws {Error} when the directory is not there.
 * @source KubeVirt v1.9.0 pkg/config/config.go
 */
export async function writeConfigIso(deps: IsoDeps, image: string, label: string, dir: string): Promise<void> {
  const entries = await listDirectory(dir);
  const base = dir.endsWith('/') ? dir : `${dir}/`;
  await writeIso(deps, image, [
    '-follow-links',
    '-volid',
    label,
    '-joliet',
    '-rock',
    '-graft-points',
    '-partition_cyl_align',
    'on',
    // The tool would take a key with a dash in front for an option.
    ...entries.map((name) => `${name.startsWith('-') ? '/' : ''}${name}=${base}${name}`),
  ]);
}

/** Names in a directory, sorted; a missing directory fails in the model's words. */
export async function listDirectory(dir: string): Promise<readonly string[]> {
  try {
    return (await readdir(dir)).sort();
  } catch (error) {
    throw goFileError(error, 'open', dir);
  }
}

async function writeIso(deps: IsoDeps, image: string, args: readonly string[]): Promise<void> {
  const staging = `${image}.staging`;
  await makeParent(image);
  await deps.tools.run(TOOL, ['-output', staging, ...args], { timeoutMs: TIMEOUT_MS });
  await giveToQemu(deps, staging);
  await rename(staging, image);
}
