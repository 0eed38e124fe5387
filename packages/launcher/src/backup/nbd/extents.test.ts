import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ExtentBatcher, mergeRuns } from './extents.ts';
import type { StatusRun } from './protocol.ts';

const run = (length: number, flags: number): StatusRun => ({ length: BigInt(length), flags });
/** The flags of each byte. */
const spread = (runs: readonly StatusRun[]): readonly number[] =>
  runs.flatMap(({ length, flags }) => Array.from({ length: Number(length) }, () => flags));

const arbitraryRuns = fc.array(fc.record({ length: fc.bigInt(0n, 9n), flags: fc.integer({ min: 0, max: 3 }) }), {
  maxLength: 12,
});

describe('runs of two contexts', () => {
  test('are split where either changes, and a hole is no change', () => {
    expect(mergeRuns([run(4, 0), run(4, 3)], [run(2, 0), run(4, 1), run(2, 0)])).toEqual([
      ...[run(2, 0), run(2, 1), run(2, 3), run(2, 2)],
    ]);
  });

  test('say of each byte what both say, as far as both reach', () => {
    fc.assert(
      fc.property(arbitraryRuns, arbitraryRuns, (allocation, dirty) => {
        const [a, b] = [spread(allocation), spread(dirty)];
        const both = Array.from({ length: Math.min(a.length, b.length) }, (_, i) => ((a[i] ?? 0) & 2) | (b[i] ?? 0));
        expect(spread(mergeRuns(allocation, dirty))).toEqual(both);
      }),
    );
  });
});

describe('extents', () => {
  test('that are alike are one; what lies beyond the end is left out', () => {
    const batcher = new ExtentBatcher(10n, 20n, false);
    expect([...batcher.add([run(2, 0), run(3, 0)]), ...batcher.add([run(2, 3), run(90, 1)])]).toEqual([]);
    expect(batcher.offset).toBe(20n);
    expect([...batcher.finish()]).toEqual([
      [
        { offset: 10n, length: 5n, flags: 0n, description: 'data' },
        { offset: 15n, length: 2n, flags: 3n, description: 'hole,zero' },
        { offset: 17n, length: 3n, flags: 1n, description: 'hole' },
      ],
    ]);
  });

  test('come in batches of 512, without gaps, also over many answers', () => {
    fc.assert(
      fc.property(fc.array(arbitraryRuns, { maxLength: 300 }), (answers) => {
        const all = answers.flat();
        const end = all.reduce((sum, { length }) => sum + length, 0n);
        const batcher = new ExtentBatcher(0n, end, true);
        const batches = [...answers.flatMap((runs) => [...batcher.add(runs)]), ...batcher.finish()];
        const extents = batches.flat();
        expect(batches.slice(0, -1).every(({ length }) => length === 512)).toBe(true);
        expect(extents.reduce((at, { offset, length }) => (offset === at ? at + length : -1n), 0n)).toBe(end);
        expect(extents.flatMap(({ length, flags }) => spread([{ length, flags: Number(flags) }]))).toEqual(spread(all));
        expect(extents.every(({ flags }, i) => flags !== extents[i - 1]?.flags)).toBe(true);
      }),
      { numRuns: 30 },
    );
  });

  test('of a kind that nobody knows', () => {
    const batcher = new ExtentBatcher(0n, 1n, true);
    const batches = [...batcher.add([run(1, 9)]), ...batcher.finish()];
    expect(batches.flat().map(({ description }) => description)).toEqual(['unknown']);
  });
});
