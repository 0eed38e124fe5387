import { expect, test } from 'vitest';

import { targetSize } from './growth.ts';

const MIB = 1n << 20n;
const HUGE = 1n << 50n;

test.each<[string, bigint, string, bigint, bigint | undefined]>([
  ['leaves the file system its share', 1024n * MIB, '0.055', HUGE, 967n * MIB],
  ['takes all without a share', 10n * MIB, '0', HUGE, 10n * MIB],
  ['goes no further than there is room', 1024n * MIB, '0', 100n * MIB, 100n * MIB],
  ['makes whole MiB', 5n * MIB + 3n, '0', HUGE, 5n * MIB],
  ['knows nothing of a share above one', 10n * MIB, '1.5', HUGE, undefined],
  ['knows nothing of a share that is no number', 10n * MIB, 'x', HUGE, undefined],
  ['knows nothing of an empty share', 10n * MIB, '', HUGE, undefined],
])('an image %s', (_title, capacity, overhead, available, expected) => {
  expect(targetSize(capacity, overhead, available)).toBe(expected);
});
