import { statSync } from 'node:fs';
import { join } from 'node:path';
import { parseVmiJson } from '@virtwire/vm-model';
import type { Vmi } from '@virtwire/vm-model';
import { createLogger } from '@virtwire/telemetry';
import { expect, test } from 'vitest';
import { createDiskWorld } from '../testing/disk-world.ts';
import type { DiskWorld } from '../testing/disk-world.ts';
import { createVectorPreparation } from '../testing/vector-preparation.ts';
import type { PreparedInput } from '../testing/vector-preparation.ts';

const log = createLogger('virt-launcher', { destination: { write: () => undefined } });
const SEED = '/var/run/kubevirt-ephemeral-disks/cloud-init-data/ns/vm/noCloud.iso';
const CONFIG = '/var/run/kubevirt-private/config-map-disks/conf.iso';

function vmiOf(sizes: Readonly<Record<string, number>>): Vmi {
  const disk = (name: string) => ({ name, disk: { bus: 'virtio' } });
  return parseVmiJson(
    JSON.stringify({
      metadata: { name: 'vm', namespace: 'ns', uid: 'u' },
      spec: {
        architecture: 'amd64',
        domain: { devices: { disks: [disk('seed'), disk('conf'), disk('scratch')] }, memory: { guest: '64Mi' } },
        volumes: [
          { name: 'seed', cloudInitNoCloud: { userData: '#cloud-config' } },
          { name: 'conf', configMap: { name: 'c' } },
          { name: 'scratch', emptyDisk: { capacity: '1Gi' } },
        ],
      },
      status: { volumeStatus: Object.entries(sizes).map(([name, size]) => ({ name, target: '', size })) },
    }),
  );
}

async function prepare(vmi: Vmi, world: DiskWorld): Promise<void> {
  const preparation = createVectorPreparation(world, { vmi } as unknown as PreparedInput);
  const { prepareSeed } = await preparation.prepareTarget(vmi, undefined, log);
  await prepareSeed();
}

const sizeOf = (world: DiskWorld, path: string): number => statSync(join(world.root, path)).size;

test('FM-8.2 images whose bytes come from the source are made empty, in their sizes, at each call', async () => {
  using world = createDiskWorld({});
  const vmi = vmiOf({ seed: 374_784, conf: 409_600 });
  for (let i = 0; i < 2; i++) {
    await prepare(vmi, world);
    expect(sizeOf(world, SEED)).toBe(374_784);
    expect(sizeOf(world, CONFIG)).toBe(409_600);
  }
  expect(world.runs.map(({ exec, args }) => `${exec} ${args[0] ?? ''}`)).toEqual(['qemu-img create']);
});

test('a seed image that the source knows no size of is made here', async () => {
  using world = createDiskWorld({});
  await prepare(vmiOf({ seed: 0, conf: 409_600 }), world);
  const made = world.runs.filter(({ exec }) => exec === 'xorrisofs');
  expect(made.map(({ media }) => media?.['user-data'])).toEqual(['#cloud-config']);
});

test('a size that nobody tells ends the preparation', async () => {
  using world = createDiskWorld({});
  await expect(prepare(vmiOf({ conf: 409_600 }), world)).rejects.toThrow(/^failed to find the status of volume seed$/);
  const text = 'pre-start pod-setup failed: creating config map disks failed: failed to find the status of volume conf';
  await expect(prepare(vmiOf({ seed: 374_784 }), world)).rejects.toThrow(text);
});
