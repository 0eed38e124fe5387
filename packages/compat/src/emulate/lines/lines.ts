import { RELEASE_LINES, type ReleaseLine } from '../../release-line.ts';
import type { LineFacts } from '../facts/line-facts.ts';
import { firstPatchOf } from './first-patches.ts';
import { V0_59 } from './v0.59.ts';
import { V1_0 } from './v1.0.ts';
import { V1_1 } from './v1.1.ts';
import { V1_2 } from './v1.2.ts';
import { V1_3 } from './v1.3.ts';
import { V1_4 } from './v1.4.ts';
import { V1_5 } from './v1.5.ts';
import { V1_6 } from './v1.6.ts';
import { V1_7 } from './v1.7.ts';
import { V1_8 } from './v1.8.ts';
import { V1_9 } from './v1.9.ts';

const FACTS: Readonly<Record<ReleaseLine, LineFacts>> = {
  'v0.59': V0_59,
  'v1.0': V1_0,
  'v1.1': V1_1,
  'v1.2': V1_2,
  'v1.3': V1_3,
  'v1.4': V1_4,
  'v1.5': V1_5,
  'v1.6': V1_6,
  'v1.7': V1_7,
  'v1.8': V1_8,
  'v1.9': V1_9,
};

/** Which release of a line is meant: its first or its last patch. */
export type Patch = 'first' | 'last';

/** All that is known of a release line, each fact with the place where it is written. */
export function factsOf(line: ReleaseLine, patch: Patch = 'last'): LineFacts {
  return patch === 'last' ? FACTS[line] : firstPatchOf(FACTS[line]);
}

/** The lines after a line, oldest first. */
export function linesAfter(line: ReleaseLine): readonly ReleaseLine[] {
  return RELEASE_LINES.slice(RELEASE_LINES.indexOf(line) + 1);
}
