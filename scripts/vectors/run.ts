import type { Files } from '../testdata/bundle.ts';
import type { CaseResult, RunFamily } from './family.ts';

/** What came out of a whole family. */
export interface FamilyResult {
  readonly passed: number;
  readonly failures: readonly CaseResult[];
  /** How many cases were not run, by reason. */
  readonly leftOut: ReadonlyMap<string, number>;
}

/** Runs every case of a family. */
export async function runFamily(run: RunFamily, files: Files): Promise<FamilyResult> {
  let passed = 0;
  const failures: CaseResult[] = [];
  const leftOut = new Map<string, number>();
  for await (const result of run(files)) {
    if (result.leftOut !== undefined) leftOut.set(result.leftOut, (leftOut.get(result.leftOut) ?? 0) + 1);
    else if (result.differences.length === 0) passed++;
    else failures.push(result);
  }
  return { passed, failures, leftOut };
}
