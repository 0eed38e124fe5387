import { expect, test } from 'vitest';
import { isTimeToCollect } from './idle-collector.ts';

test.each([
  ['after work, when it is quiet', { nowUs: 1_000_000, lastLookUs: 990_000, lastCollectionUs: 0 }, true],
  ['not in the middle of work', { nowUs: 1_000_000, lastLookUs: 500_000, lastCollectionUs: 0 }, false],
  ['not again when nothing happened', { nowUs: 1_010_000, lastLookUs: 1_005_000, lastCollectionUs: 1_000_000 }, false],
])('collects %s', (_title, facts, expected) => {
  expect(isTimeToCollect(facts)).toBe(expected);
});
