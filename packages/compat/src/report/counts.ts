import type { Cell } from '../cell.ts';

/** How many cells ended how. */
export interface Counts {
  readonly passed: number;
  readonly declared: number;
  readonly notBuilt: number;
  readonly failed: number;
}

/** Counts cells by their result. */
export function countCells(cells: readonly Cell[]): Counts {
  const of = (kind: Cell['result']['kind']): number => cells.filter(({ result }) => result.kind === kind).length;
  return { passed: of('pass'), declared: of('difference'), notBuilt: of('notBuilt'), failed: of('fail') };
}

/** The last line of a run, which CI reads. */
export function renderCounts({ passed, declared, notBuilt, failed }: Counts): string {
  return `${passed} passed, ${declared} declared, ${notBuilt} not built, ${failed} failed`;
}
