import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { clusterConfig } from '../../cluster-config.ts';
import { sampleVmi } from '../../testing/samples.ts';
import { createHostDisks, fittingSize } from './create.ts';

const MI = 1n << 20n;
let root = '';
let disks = '';
beforeEach(() => {
  root = mkdtempSync('/tmp/vh-disk-');
  disks = join(root, 'run/kubevirt-private/vmi-disks/data');
  mkdirSync(disks, { recursive: true });
  mkdirSync(join(root, 'var'));
  symlinkSync('/run', join(root, 'var/run'));
});
afterEach(() => rmSync(root, { recursive: true }));

const vmi = (capacity: string, type = 'DiskOrCreate') =>
  sampleVmi('Scheduled', (one) => {
    const path = '/var/run/kubevirt-private/vmi-disks/data/disk.img';
    one.spec.volumes = [{ name: 'data', hostDisk: { path, type, capacity } }];
  });

async function create(capacity: string, type?: string): Promise<string[]> {
  const events: string[] = [];
  const deps = {
    events: { event: (_o: unknown, kind: string, reason: string) => events.push(`${kind} ${reason}`) },
    config: () => clusterConfig(),
    giveToQemu: (_file: unknown, path: string) => events.push(`chown ${path}`),
  };
  await createHostDisks(deps, vmi(capacity, type), { pid: 1, ppid: 0, rootPath: root });
  return events;
}

test.each<[string, bigint, bigint, number, ReturnType<typeof fittingSize>]>([
  ['enough space', 10n * MI, 20n * MI, 10, { bytes: 10n * MI, isTolerated: false }],
  ['a little less than asked for', 100n, 91n, 10, { bytes: 91n, isTolerated: true }],
  ['just what is tolerated', 100n, 90n, 10, { bytes: 90n, isTolerated: true }],
  ['less than that', 100n, 89n, 10, undefined],
  ['no toleration', 100n, 99n, 0, undefined],
  ['a volume with less than its reserve', 100n, -5n, 100, undefined],
  ['any size tolerated', 100n, 1n, 100, { bytes: 1n, isTolerated: true }],
])('%s', (_title, wanted, available, percent, expected) => {
  expect(fittingSize(wanted, available, percent)).toEqual(expected);
});

test('a missing image is made sparse, with its size, and given to QEMU', async () => {
  expect(await create('5Mi')).toEqual(['chown /var/run/kubevirt-private/vmi-disks/data/disk.img']);
  const { size, blocks } = statSync(join(disks, 'disk.img'));
  expect(size).toBe(Number(5n * MI));
  expect(blocks).toBeLessThan(16);
});

test('an image that is there stays as it is', async () => {
  writeFileSync(join(disks, 'disk.img'), 'mine');
  expect(await create('5Mi')).toEqual([]);
  expect(statSync(join(disks, 'disk.img')).size).toBe(4);
});

test('a disk of type Disk is never made', async () => {
  await create('5Mi', 'Disk');
  expect(readdirSync(disks)).toEqual([]);
});

test('a disk that does not fit is an error, and nothing is left behind', async () => {
  await expect(create('4096Ti')).rejects.toThrow(/^preparing host-disks failed: unable to create .*not enough space/);
  expect(readdirSync(disks)).toEqual([]);
});

test.each(['0', 'nonsense'])('a capacity of %s is an error', async (capacity) => {
  await expect(create(capacity)).rejects.toThrow('it has no capacity');
});

test('FM-13.1 a link in the place of the image is refused', async () => {
  symlinkSync('/etc/passwd', join(disks, 'disk.img'));
  await expect(create('5Mi')).rejects.toThrow('is a link');
});

test('FM-13.1 a link in the place of the disk directory is refused', async () => {
  rmSync(disks, { recursive: true });
  symlinkSync('/etc', disks);
  await expect(create('5Mi')).rejects.toThrow('is a link');
});
