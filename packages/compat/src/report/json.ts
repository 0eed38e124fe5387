import type { Cell } from '../cell.ts';
import { countCells } from './counts.ts';

/** When and with what a matrix was run. */
export interface RunFacts {
  /** As the API prints times. */
  readonly startedAt: string;
  readonly durationMs: number;
  /** What stands for `new`, by side. */
  readonly subjects: Readonly<Partial<Record<'handler' | 'launcher', string>>>;
}

/** The cells as JSON, traces of failed cells included. */
export function renderJsonReport(cells: readonly Cell[], facts: RunFacts): string {
  const shown = cells.map(({ trace, durationMs, ...cell }) => ({
    ...cell,
    durationMs: Math.round(durationMs),
    ...(cell.result.kind === 'fail' ? { trace } : {}),
  }));
  return `${JSON.stringify({ ...facts, counts: countCells(cells), cells: shown }, null, 2)}\n`;
}
