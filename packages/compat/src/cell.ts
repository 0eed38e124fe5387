import type { ReleaseLine } from './release-line.ts';

/** Which side of a pair is the build under test; the other one is an emulated release. */
export type SideUnderTest = 'handler' | 'launcher';

/** One side of a pair: the build under test, or the emulation of a release line. */
export type Party = 'new' | ReleaseLine;

/** Who met whom. */
export interface Pair {
  readonly handler: Party;
  readonly launcher: Party;
}

/** How a scenario ended for one pair. */
export type CellResult =
  | { readonly kind: 'pass' }
  /** The pair differs from a pair of equal releases, and that is known and right. */
  | { readonly kind: 'difference'; readonly reason: string }
  /** The build under test lacks the part that the scenario needs. */
  | { readonly kind: 'notBuilt'; readonly missingPart: string }
  | { readonly kind: 'fail'; readonly reason: string };

/** One cell of the matrix. */
export interface Cell {
  readonly scenario: string;
  readonly pair: Pair;
  readonly result: CellResult;
  readonly durationMs: number;
  /** What happened, line by line, for whoever has to find out why. Bounded by the runner. */
  readonly trace: readonly string[];
}

/** What every scenario gets, whichever side is emulated. */
export interface ScenarioContext {
  readonly pair: Pair;
  /** An empty directory of the cell, removed afterwards. */
  readonly workDir: string;
  readonly signal: AbortSignal;
  /** Adds a line to the cell's trace. */
  note(line: string): void;
}
