import { expect, test } from 'vitest';
import { createRandom } from './random.ts';
import { fuzz } from './run.ts';
import { TARGETS } from './targets.ts';

const INPUTS = 2_000;
const SEED = 20_261_129;

test.each(Object.keys(TARGETS))('%s survives two thousand inputs', { timeout: 240_000 }, async (target) => {
  const figures = await fuzz({ target, inputs: INPUTS, seed: SEED });
  expect(figures.inputs).toBe(INPUTS);
});

test('all inputs are shared out', () => {
  const shares = Object.values(TARGETS).map(({ share }) => share);
  expect(shares.reduce((sum, share) => sum + share, 0)).toBeCloseTo(1);
});

test('an input can be had again', () => {
  const numbers = (): number[] => {
    const random = createRandom(7);
    return Array.from({ length: 5 }, () => random.below(1_000));
  };
  expect(numbers()).toEqual(numbers());
});
