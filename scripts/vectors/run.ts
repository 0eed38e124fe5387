import type { Files } from '../testdata/bundle.ts';
import type { CaseResult, RunFamily } from './family.ts';

/** What came out of a whole family. */
export interface FamilyResult {
  readonly passed: number;
  readonly failures: readonly CaseResult[];
}

/** Runs every case of a family. */
export async function runFamily(run: RunFamily, files: Files): Promise<FamilyResult> {
  let passed = 0;
  const failures: CaseResult[] = [];
  for await (const result of run(files)) {
    if (result.differences.length === 0) passed++;
    else failures.push(result);
  }
  return { passed, failures };
}
