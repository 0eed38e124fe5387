import fc from 'fast-check';
import { describe, expect, test } from 'vitest';

import { CpuPool } from './cpu-pool.ts';

/** Two cells of four cores with two threads each: CPUs 0 to 7 and 8 to 15, neighbours share a core. */
const TOPOLOGY = {
  numaCells: [0, 1].map((id) => ({
    id,
    cpus: Array.from({ length: 8 }, (_none, index) => {
      const cpu = id * 8 + index;
      const first = cpu - (cpu % 2);
      return { id: cpu, siblings: [first, first + 1] };
    }),
  })),
};

describe('cores of exclusive CPUs', () => {
  test.each([
    ['whole cores come first', [0, 2, 3, 4], 2, true, 1, [2, 3]],
    ['left-over threads of one cell serve next', [0, 2, 4, 5], 2, true, 2, [4, 5, 0, 2]],
    ['cells are crossed only when that is allowed', [0, 2, 4, 8], 2, true, 2, [0, 2, 4, 8]],
    ['threads of one CPU each take whatever is there', [5, 1, 9], 1, true, 3, [1, 5, 9]],
  ])('%s', (_title, cpus, threads, isRelaxed, cores, expected) => {
    expect(new CpuPool(TOPOLOGY, cpus, threads, isRelaxed).fitCores(cores)).toEqual({
      hostCpus: expected,
      missingCores: 0,
    });
  });

  test('a strict pool says how many cores it could not place within a cell', () => {
    expect(new CpuPool(TOPOLOGY, [0, 2, 4, 8], 2, false).fitCores(2).missingCores).toBe(1);
  });

  test('less than a core that is missing is not reported: the model rounds down', () => {
    expect(new CpuPool(TOPOLOGY, [0, 2, 4], 2, true).fitCores(2)).toEqual({ hostCpus: [0, 2, 4], missingCores: 0 });
  });

  test('a single thread comes from left-over threads before a core is broken', () => {
    const pool = new CpuPool(TOPOLOGY, [0, 2, 3], 2, true);
    expect([pool.takeThread(), pool.takeThread(), pool.takeThread(), pool.takeThread()]).toEqual([0, 2, 3, undefined]);
  });

  test('no CPU is handed out twice, and none that is not the pod’s', () => {
    const cpus = fc.uniqueArray(fc.integer({ min: 0, max: 15 }), { minLength: 1 });
    fc.assert(
      fc.property(
        cpus,
        fc.integer({ min: 1, max: 2 }),
        fc.integer({ min: 1, max: 8 }),
        fc.boolean(),
        (set, t, n, r) => {
          const pool = new CpuPool(TOPOLOGY, set, t, r);
          const taken = [...pool.fitCores(n).hostCpus];
          for (let cpu = pool.takeThread(); cpu !== undefined; cpu = pool.takeThread()) taken.push(cpu);
          expect(new Set(taken).size).toBe(taken.length);
          expect(taken.every((cpu) => set.includes(cpu))).toBe(true);
          expect(taken.length).toBe(set.length);
        },
      ),
    );
  });
});
