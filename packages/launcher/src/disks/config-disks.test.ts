import { expect, test } from 'vitest';

import type { Vmi } from '@virtwire/vm-model';

import { createDiskWorld } from '../testing/disk-world.ts';
import { writeConfigDisks } from './config-disks.ts';

const PRIVATE = '/var/run/kubevirt-private';

function vmiWith(disks: readonly string[], volumes: Vmi['spec']['volumes'] & object): Vmi {
  return {
    metadata: { name: 'vm', namespace: 'ns', uid: 'u' },
    spec: { domain: { devices: { disks: disks.map((name) => ({ name, disk: { bus: 'virtio' } })) } }, volumes },
  };
}

async function madeFor(vmi: Vmi, files: readonly string[]): Promise<readonly string[]> {
  const entries = files.map((file) => [`${PRIVATE}/${file}`, { content: 'x' }] as const);
  using world = createDiskWorld({ files: Object.fromEntries(entries) });
  await writeConfigDisks(world.deps, vmi, false);
  return world.runs.map(({ args }) => /([^/]+)\.iso\.staging$/.exec(args[1] ?? '')?.[1] ?? '');
}

test('images come in the order of the disks that show them, and none for a volume that no disk shows', async () => {
  const volumes = ['a', 'b', 'c'].map((name) => ({ name, configMap: { name } }));
  const files = ['a', 'b', 'c'].map((name) => `config-map/${name}/f`);
  expect(await madeFor(vmiWith(['c', 'a'], volumes), files)).toEqual(['c', 'a']);
});

test('answers for Windows are packed, and looked for, whether or not a disk shows them', async () => {
  const vmi = vmiWith([], [{ name: 'sp', sysprep: { configMap: { name: 'm' } } }]);
  expect(await madeFor(vmi, ['sysprep/sp/Unattend.XML'])).toEqual(['sp']);
  await expect(madeFor(vmi, ['sysprep/sp/other'])).rejects.toThrow(
    'creating sysprep disks failed: Sysprep drive should contain autounattend.xml or unattend.xml but neither were found.',
  );
  await expect(madeFor(vmi, [])).rejects.toThrow(
    /^creating sysprep disks failed: Error validating that autounattend.xml or unattend.xml have been provided: open .*\/sysprep\/sp: no such file or directory$/,
  );
});

test('an empty answer source makes no image', async () => {
  expect(await madeFor(vmiWith(['sp'], [{ name: 'sp', sysprep: {} }]), [])).toEqual([]);
});
