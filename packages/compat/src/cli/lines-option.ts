import { CompatError } from '../errors.ts';
import type { ReleaseLine } from '../release-line.ts';
import { RELEASE_LINES } from '../release-line.ts';

/** Reads a comma-separated list of release lines; undefined stands for all. @throws {CompatError} `BadOption`. */
export function parseLines(text: string | undefined): readonly ReleaseLine[] | undefined {
  if (text === undefined) return undefined;
  return text.split(',').map((word) => {
    const line = RELEASE_LINES.find((candidate) => candidate === word.trim());
    if (line === undefined) {
      throw new CompatError('BadOption', `unknown release ${word}: one of ${RELEASE_LINES.join(', ')}`);
    }
    return line;
  });
}
