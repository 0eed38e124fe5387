import type { Files } from '../testdata/bundle.ts';

/** What came out of one case. No difference: it passed. */
export interface CaseResult {
  readonly name: string;
  readonly differences: readonly string[];
  /** Why the case was not run: a feature that the product does not have yet. */
  readonly leftOut?: string;
}

/** Runs all cases of a folder through the public functions of the product. */
export type RunFamily = (files: Files) => Iterable<CaseResult> | AsyncIterable<CaseResult>;

/** The cases of a folder that has one directory per case: their names, in order. */
export function caseNames(files: Files): readonly string[] {
  const names = files.paths.filter((path) => path.includes('/')).map((path) => path.slice(0, path.indexOf('/')));
  return [...new Set(names)].sort();
}

/** Runs one case; what it throws is a difference, not the end of the run. */
export async function runCase(
  name: string,
  run: () => readonly string[] | Promise<readonly string[]>,
): Promise<CaseResult> {
  try {
    return { name, differences: await run() };
  } catch (caught) {
    return { name, differences: [`threw ${caught instanceof Error ? caught.message : String(caught)}`] };
  }
}
