import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';

import type { Vmi, Volume, VolumeStatus } from '@virtwire/vm-model';

import { type DiskWorld, createDiskWorld } from '../testing/disk-world.ts';
import type { TrackingOverlay } from './storage-daemon.ts';
import { ensureTrackingOverlays } from './tracking-overlays.ts';

const OVERLAY = '/var/run/kubevirt-private/libvirt/qemu/cbt/data.qcow2';
const CLAIM: Volume = { name: 'data', persistentVolumeClaim: { claimName: 'c' } };
const IMAGE = '/var/run/kubevirt-private/vmi-disks/data/disk.img';

function vmiWith(state: string, volumes: Volume[] = [CLAIM], volumeStatus: VolumeStatus[] = []): Vmi {
  return {
    metadata: { name: 'vm', namespace: 'ns', uid: 'u' },
    spec: { domain: { devices: {} }, volumes },
    status: { runtimeUser: 107, changedBlockTracking: { state }, volumeStatus },
  };
}

interface Outcome {
  readonly asked: readonly TrackingOverlay[];
  readonly overlays: Readonly<Record<string, string>>;
}

async function ensure(world: DiskWorld, vmi: Vmi, fault?: Error): Promise<Outcome> {
  const asked: TrackingOverlay[] = [];
  const overlays = await ensureTrackingOverlays(
    {
      ...world.deps,
      async createTrackingOverlay(request) {
        asked.push({ ...request, image: world.inPod(request.image), overlay: world.inPod(request.overlay) });
        writeFileSync(request.overlay, 'made');
        if (fault !== undefined) throw fault;
      },
    },
    vmi,
  );
  return { asked, overlays: Object.fromEntries([...overlays].map(([name, path]) => [name, world.inPod(path)])) };
}

describe('overlays that track changed blocks', () => {
  test('made while tracking is set up, of the size of the image, in place at once', async () => {
    using world = createDiskWorld({});
    const { asked, overlays } = await ensure(world, vmiWith('Initializing'));
    expect(overlays).toEqual({ data: OVERLAY });
    expect(asked).toEqual([
      { overlay: `${OVERLAY}.staging`, image: IMAGE, isBlockDevice: false, bytes: 10_737_418_240 },
    ]);
    expect(readdirSync(dirname(join(world.root, OVERLAY)))).toEqual(['data.qcow2']);
  });

  test('one that is there knows what changed, and stays', async () => {
    using world = createDiskWorld({ files: { [OVERLAY]: { content: 'old' } } });
    const { asked, overlays } = await ensure(world, vmiWith('Initializing'));
    expect([asked, overlays]).toEqual([[], { data: OVERLAY }]);
  });

  test('tracked volumes keep theirs, and only a volume being plugged gets a new one', async () => {
    using world = createDiskWorld({});
    const plugged = { name: 'new', dataVolume: { name: 'd' } };
    const status = [{ name: 'new', target: '', phase: 'MountedToPod' as const, hotplugVolume: {} }];
    const { asked, overlays } = await ensure(world, vmiWith('Enabled', [CLAIM, plugged], status));
    expect(Object.keys(overlays)).toEqual(['data', 'new']);
    expect(asked.map(({ image }) => image)).toEqual(['/var/run/kubevirt/hotplug-disks/new.img']);
  });

  test.each([
    ['tracking is off', vmiWith('Disabled')],
    ['the volume is made at each start', vmiWith('Initializing', [{ name: 'x', emptyDisk: { capacity: '1Gi' } }])],
  ])('none when %s', async (_title, vmi) => {
    using world = createDiskWorld({});
    expect(await ensure(world, vmi)).toEqual({ asked: [], overlays: {} });
  });

  test('a failure names volume and image, and leaves nothing', async () => {
    using world = createDiskWorld({});
    const failing = ensure(world, vmiWith('Initializing'), new Error('no'));
    await expect(failing).rejects.toThrow(/^failed to create the overlay of volume data over \S*disk\.img: no$/);
    expect(existsSync(join(world.root, `${OVERLAY}.staging`))).toBe(false);
  });

  test('a root launcher keeps them beside libvirt’s own files', async () => {
    using world = createDiskWorld({});
    const vmi = vmiWith('Enabled');
    delete vmi.status?.runtimeUser;
    expect((await ensure(world, vmi)).overlays).toEqual({ data: '/var/lib/libvirt/qemu/cbt/data.qcow2' });
  });
});
