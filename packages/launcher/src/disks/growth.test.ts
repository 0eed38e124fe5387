import { expect, test } from 'vitest';

import { emptyDomainSpec } from '@virtwire/vm-model';
import { createDiskWorld } from '../testing/disk-world.ts';
import { growDisksOffline, targetSize } from './growth.ts';

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

test('storage that allocates slowly has ten minutes to grow an image, not the seconds that a tool has else', async () => {
  using world = createDiskWorld({ qemuImgInfo: { '/disk.img': { 'virtual-size': 0, 'actual-size': 0 } } });
  const limits: unknown[] = [];
  const run = async (...[, , options]: Parameters<typeof world.deps.tools.run>): Promise<void> => {
    limits.push(options?.timeoutMs);
  };
  const disk = { Source: { File: `${world.root}/disk.img` }, Capacity: 5n * MIB, FilesystemOverhead: '0' };
  const spec = { ...emptyDomainSpec(), Devices: { Disks: [disk] } };
  await growDisksOffline({ ...world.deps, tools: { run } }, spec);
  expect(limits).toEqual([600_000]);
});
