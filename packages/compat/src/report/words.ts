import type { Cell, CellResult, Pair } from '../cell.ts';

/** What a pair is called: `new handler, launcher v1.3`. */
export function pairName({ handler, launcher }: Pair): string {
  return handler === 'new' ? `new handler, launcher ${launcher}` : `handler ${handler}, new launcher`;
}

/** Word and sign of a result; the sign stands for itself without colour. */
export const VERDICTS: Readonly<Record<CellResult['kind'], { readonly word: string; readonly sign: string }>> = {
  pass: { word: 'pass', sign: '✓' },
  difference: { word: 'differs', sign: '≠' },
  notBuilt: { word: 'not built', sign: '○' },
  fail: { word: 'FAIL', sign: '✗' },
};

/** Why a result is not a plain pass; undefined for one that is. */
export function reasonOf(result: CellResult): string | undefined {
  if (result.kind === 'pass') return undefined;
  return result.kind === 'notBuilt' ? `missing: ${result.missingPart}` : result.reason;
}

/** One line about a cell, for terminals. */
export function renderCellLine({ scenario, pair, result, durationMs }: Cell): string {
  const { sign, word } = VERDICTS[result.kind];
  const reason = reasonOf(result);
  const head = `${sign} ${word.padEnd(9)} ${pairName(pair).padEnd(28)} ${scenario.padEnd(22)} ${durationMs.toFixed(0)} ms`;
  return reason === undefined ? head : `${head}  ${reason}`;
}
