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

/** A part that the build under test does not have: what the cell is about cannot be tried. */
export class PartMissing extends Error {
  override readonly name = 'PartMissing';
}

/** Takes a failure in the words of the build under test. @throws {PartMissing} or {CompatError} `CallFailed`. */
export function failBy(words: string, doing: string): never {
  const part = missingPart(words);
  if (part !== undefined) throw new PartMissing(part);
  throw new CompatError('CallFailed', `${doing}: ${words}`);
}
