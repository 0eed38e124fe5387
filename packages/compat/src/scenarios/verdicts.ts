import type { CellResult } from '../cell.ts';
import { CompatError } from '../errors.ts';

/** Everything went as between peers of one release. */
export const PASS: CellResult = { kind: 'pass' };

/** Differs from a pair of equal releases, and that is known and right. */
export function difference(reason: string): CellResult {
  return { kind: 'difference', reason };
}

/** @throws {CompatError} `Deviation` with what should have been. */
export function check(isSo: boolean, whatElse: string): asserts isSo {
  if (!isSo) throw new CompatError('Deviation', whatElse);
}

/** How both our sides say that a part does not exist yet. */
const NOT_BUILT = /([^":]+?) (?:is|are) not supported(?: by this \w+)? yet(?:: ([^"]+))?/;

/** The part that is missing, by the words of our side; undefined if the words say something else. */
function missingPart(words: string): string | undefined {
  const match = NOT_BUILT.exec(words);
  if (match === null) return undefined;
  const [, part = '', detail] = match;
  return detail === undefined ? part.trim() : `${part.trim()}: ${detail.trim()}`;
}

/** The verdict for a failure in our side's own words. @throws {CompatError} `CallFailed` unless a part is missing. */
export function notBuiltOrThrow(words: string): CellResult {
  const part = missingPart(words);
  if (part === undefined) throw new CompatError('CallFailed', words);
  return { kind: 'notBuilt', missingPart: part };
}
