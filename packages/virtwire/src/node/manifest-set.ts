import { createHash } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { VmiKey } from '../controller/store.ts';
import { keyOf } from '../controller/store.ts';
import type { ManifestVmi } from '../manifest/parse.ts';
import type { Problem } from '../manifest/problem.ts';
import { readManifest } from '../manifest/read.ts';
import { validateVmi } from '../manifest/validate.ts';

/** A VM that a directory of manifests asks for. */
export interface WantedVm extends ManifestVmi {
  /** Changes when the manifest of this VM changes. */
  readonly hash: string;
}

/** What a directory of manifests asks for, and what is wrong with it. */
export interface ManifestSet {
  readonly wanted: ReadonlyMap<VmiKey, WantedVm>;
  readonly problems: readonly Problem[];
  /** VMs that a faulty file may mean: a running one is left alone while its manifest is being repaired. */
  readonly hasFaultyFiles: boolean;
}

const EXTENSIONS = ['.yaml', '.yml', '.json'];

/** Reads all manifests of a directory; files that are wrong do not keep the others from being read. */
export function readManifests(directory: string): ManifestSet {
  const wanted = new Map<VmiKey, WantedVm>();
  const problems: Problem[] = [];
  let hasFaultyFiles = false;
  const names = readdirSync(directory).filter(
    (name) => EXTENSIONS.some((end) => name.endsWith(end)) && !name.startsWith('.'),
  );
  for (const name of names.sort()) {
    const file = join(directory, name);
    const read = readManifest(file);
    hasFaultyFiles ||= read.problems.length > 0;
    problems.push(...read.problems);
    for (const manifest of read.vmis) {
      const key = keyOf(manifest.vmi);
      const other = wanted.get(key);
      if (other !== undefined) {
        problems.push({
          where: file,
          field: 'metadata.name',
          what: `VM ${key} is in ${other.file} already: that one is used`,
        });
        continue;
      }
      const bad = validateVmi(file, manifest.vmi);
      problems.push(...bad);
      if (bad.length > 0) hasFaultyFiles = true;
      else wanted.set(key, { ...manifest, hash: hashOf(manifest) });
    }
  }
  return { wanted, problems, hasFaultyFiles };
}

function hashOf({ vmi }: ManifestVmi): string {
  const text = JSON.stringify(vmi, (_name, value: unknown) => (typeof value === 'bigint' ? `${value}n` : value));
  return createHash('sha256').update(text).digest('hex').slice(0, 16);
}
