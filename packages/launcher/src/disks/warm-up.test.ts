import { readdirSync } from 'node:fs';
import { expect, test } from 'vitest';

import { createDiskWorld } from '../testing/disk-world.ts';
import { warmUpPreparation } from './warm-up.ts';

test('warming up makes nothing', async () => {
  using world = createDiskWorld({});
  const before = readdirSync(world.root, { recursive: true });
  await warmUpPreparation(world.deps);
  expect(readdirSync(world.root, { recursive: true })).toEqual(before);
  expect(world.runs).toEqual([{ exec: 'qemu-img', args: ['--version'] }]);
});

test('a tool that is missing is no failure', async () => {
  using world = createDiskWorld({ failingTools: ['qemu-img'] });
  await expect(warmUpPreparation(world.deps)).resolves.toBeUndefined();
});
