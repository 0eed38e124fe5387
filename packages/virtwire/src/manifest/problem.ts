import { VirtwireError } from '../errors.ts';

/** One thing that is wrong with a manifest. */
export interface Problem {
  /** File, with line and column when the text itself is wrong. */
  readonly where: string;
  /** Path of the field, such as `spec.volumes[1].containerDisk.image`; empty for the whole document. */
  readonly field: string;
  readonly what: string;
}

/** The problem on one line: file, field, what is wrong and what to do. */
export function renderProblem({ where, field, what }: Problem): string {
  return field === '' ? `${where}: ${what}` : `${where}: ${field}: ${what}`;
}

/** The error for a manifest that has problems: the first one is told, the others are counted. */
export function manifestError(problems: readonly [Problem, ...Problem[]]): VirtwireError {
  const [first, ...rest] = problems;
  const more = rest.length === 0 ? '' : ` (and ${rest.length} more)`;
  return new VirtwireError('BadManifest', `${renderProblem(first)}${more}`);
}
