import type { StatusRun } from './protocol.ts';

/** Context in which a server tells of holes and zeros. */
export const ALLOCATION = 'base:allocation';
/** The context in which QEMU tells what changed since a checkpoint. */
export const dirtyContext = (bitmap: string): string => `qemu:dirty-bitmap:${bitmap}`;

/** Extents that go into one answer. */
const BATCH = 512;
const ZERO = 2;
const ALLOCATION_WORDS = ['data', 'hole', 'zero', 'hole,zero'];
const DIRTY_WORDS = ['clean', 'dirty', 'zero', 'dirty,zero'];

/** A part of an export that is all of one kind. */
export interface ExportExtent {
  readonly offset: bigint;
  readonly length: bigint;
  readonly flags: bigint;
  readonly description: string;
}

/**
 * What is zero and what changed, in runs that are both; as far as both are known.
 *
 * Flags 1 of the two contexts mean different things, a hole here and a change there, so of the first only zeros count.
 */
export function mergeRuns(allocation: readonly StatusRun[], dirty: readonly StatusRun[]): readonly StatusRun[] {
  const merged: StatusRun[] = [];
  let [i, j, usedOfI, usedOfJ] = [0, 0, 0n, 0n];
  for (;;) {
    const [a, b] = [allocation[i], dirty[j]];
    if (a === undefined || b === undefined) return merged;
    const [leftOfA, leftOfB] = [a.length - usedOfI, b.length - usedOfJ];
    const length = leftOfA < leftOfB ? leftOfA : leftOfB;
    if (length > 0n) merged.push({ length, flags: (a.flags & ZERO) | b.flags });
    [i, usedOfI] = length === leftOfA ? [i + 1, 0n] : [i, usedOfI + length];
    [j, usedOfJ] = length === leftOfB ? [j + 1, 0n] : [j, usedOfJ + length];
  }
}

/** Gathers runs into extents, joins what is alike, and hands them out in batches. */
export class ExtentBatcher {
  readonly #words: readonly string[];
  readonly #end: bigint;
  #offset: bigint;
  #open: { readonly offset: bigint; readonly length: bigint; readonly flags: number } | undefined;
  #ready: ExportExtent[] = [];

  /** @param isIncremental the runs tell of changes. */
  constructor(offset: bigint, end: bigint, isIncremental: boolean) {
    this.#offset = offset;
    this.#end = end;
    this.#words = isIncremental ? DIRTY_WORDS : ALLOCATION_WORDS;
  }

  /** How far the runs reach by now. */
  get offset(): bigint {
    return this.#offset;
  }

  /** Takes runs that follow on the last; what lies beyond the end is left out. */
  *add(runs: readonly StatusRun[]): Iterable<readonly ExportExtent[]> {
    for (const run of runs) {
      const left = this.#end - this.#offset;
      const length = run.length < left ? run.length : left;
      if (length <= 0n) continue;
      if (this.#open?.flags === run.flags) this.#open = { ...this.#open, length: this.#open.length + length };
      else {
        this.#close();
        this.#open = { offset: this.#offset, length, flags: run.flags };
      }
      this.#offset += length;
      if (this.#ready.length >= BATCH) yield this.#takeReady();
    }
  }

  /** What is left. */
  *finish(): Iterable<readonly ExportExtent[]> {
    this.#close();
    if (this.#ready.length > 0) yield this.#takeReady();
  }

  #close(): void {
    if (this.#open === undefined) return;
    const { offset, length, flags } = this.#open;
    this.#ready.push({ offset, length, flags: BigInt(flags), description: this.#words[flags] ?? 'unknown' });
    this.#open = undefined;
  }

  #takeReady(): readonly ExportExtent[] {
    const batch = this.#ready;
    this.#ready = [];
    return batch;
  }
}
