import type { ManifestVmi } from './parse.ts';
import { findVmFiles } from './files.ts';
import type { Problem } from './problem.ts';
import { validateVmi } from './validate.ts';

/** Everything that can be known to be wrong before a start: the manifest itself, then the files that it names. */
export function checkManifest({ file, vmi }: ManifestVmi, claimsDir: string): readonly Problem[] {
  const problems = validateVmi(file, vmi);
  return problems.length > 0 ? problems : findVmFiles(vmi, { file, claimsDir }).problems;
}
