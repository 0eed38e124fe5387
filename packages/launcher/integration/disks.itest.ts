import { execFileSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';

import { runTool } from '@virtwire/host';
import { createLogger } from '@virtwire/telemetry';
import { type Vmi, emptyDomainSpec } from '@virtwire/vm-model';

import { DEFAULT_DOMAIN_PATHS } from '../src/converter/circumstances.ts';
import { cloudInitImage } from '../src/converter/volume-paths.ts';
import { writeCloudInitImage } from '../src/disks/cloud-init-image.ts';
import { readCloudInit } from '../src/disks/cloud-init-source.ts';
import { writeConfigDisks } from '../src/disks/config-disks.ts';
import { growDisksOffline } from '../src/disks/growth.ts';
import { createImagePort, readImageInfo } from '../src/disks/image-info.ts';
import { linkImageVolumes } from '../src/disks/image-volumes.ts';
import { ensureContainerDiskOverlays, ensureEmptyDisks } from '../src/disks/overlays.ts';
import type { DiskDeps, DiskPaths } from '../src/disks/ports.ts';
import { createTrackingOverlay } from '../src/disks/storage-daemon.ts';

const TOOLS = ['/usr/bin/qemu-img', '/usr/bin/xorrisofs', '/usr/bin/xorriso', '/usr/bin/qemu-storage-daemon'];
const obstacle = TOOLS.filter((tool) => !existsSync(tool)).join(', ');
const MIB = 1024 * 1024;

interface QemuInfo {
  readonly format: string;
  readonly 'virtual-size': number;
  readonly 'actual-size': number;
  readonly 'backing-filename'?: string;
}

function qemuImg(...args: readonly string[]): string {
  return execFileSync('/usr/bin/qemu-img', args, { encoding: 'utf8' });
}

function qemuInfo(path: string): QemuInfo {
  return JSON.parse(qemuImg('info', '--output', 'json', path)) as QemuInfo;
}

/** Reads a file out of an ISO image. */
function readIso(image: string, path: string): string {
  const dir = mkdtempSync(join(tmpdir(), 'virtwire-iso-'));
  try {
    const target = join(dir, 'out');
    execFileSync('/usr/bin/xorriso', ['-osirrox', 'on', '-indev', image, '-extract', path, target], {
      stdio: 'ignore',
    });
    return readFileSync(target, 'utf8');
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

function vmiWith(volumes: Vmi['spec']['volumes']): Vmi {
  const disks = (volumes ?? []).map(({ name }) => ({ name, disk: { bus: 'virtio' as const } }));
  return {
    metadata: { name: 'vm', namespace: 'ns', uid: 'u' },
    spec: { domain: { devices: { disks }, firmware: { uuid: 'f1' } }, ...(volumes === undefined ? {} : { volumes }) },
  };
}

describe.skipIf(obstacle !== '')(`disks with the real tools ${obstacle === '' ? '' : `(missing: ${obstacle})`}`, () => {
  let root: string;
  let deps: DiskDeps;

  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), 'virtwire-disks-'));
    const owner = statSync(root);
    const paths = Object.fromEntries(
      Object.entries({
        ...DEFAULT_DOMAIN_PATHS,
        imageVolumeDir: '/images',
        kernelBootDir: '/kernel',
        serviceAccountDir: '/account/',
      }).map(([name, path]) => [name, root + path]),
    ) as unknown as DiskPaths;
    mkdirSync(paths.containerDiskDir, { recursive: true });
    deps = {
      paths,
      images: createImagePort(),
      tools: {
        async run(file, args, options) {
          await runTool(file, args, options);
        },
      },
      qemuUser: { uid: owner.uid, gid: owner.gid },
      log: createLogger('virt-launcher', { destination: { write: () => undefined } }),
    };
  });
  afterEach(() => rmSync(root, { recursive: true, force: true }));

  test.each([
    ['raw', ['create', '-f', 'raw']],
    ['qcow2', ['create', '-f', 'qcow2']],
    ['qcow2 of version 2', ['create', '-f', 'qcow2', '-o', 'compat=0.10']],
    ['vmdk', ['create', '-f', 'vmdk']],
    ['vdi', ['create', '-f', 'vdi']],
    ['vhdx', ['create', '-f', 'vhdx']],
    ['vpc', ['create', '-f', 'vpc']],
    ['qed', ['create', '-f', 'qed']],
    ['parallels', ['create', '-f', 'parallels']],
  ])('the header of a %s image says what qemu-img says', async (_format, command) => {
    const path = join(root, 'image');
    qemuImg(...command, path, '64M');
    const expected = qemuInfo(path);
    const info = await readImageInfo(path);
    expect(info.format).toBe(expected.format);
    expect(info.actualSize).toBe(expected['actual-size']);
    if (info.format === 'raw' || info.format === 'qcow2') expect(info.virtualSize).toBe(expected['virtual-size']);
  });

  test('a backing file and an external data file are found', async () => {
    const base = join(root, 'base.qcow2');
    qemuImg('create', '-f', 'qcow2', base, '8M');
    qemuImg('create', '-f', 'qcow2', '-b', base, '-F', 'qcow2', join(root, 'over.qcow2'));
    expect((await readImageInfo(join(root, 'over.qcow2'))).backingFile).toBe(base);
    const data = join(root, 'data');
    qemuImg('create', '-f', 'qcow2', '-o', `data_file=${data}`, join(root, 'meta.qcow2'), '8M');
    expect((await readImageInfo(join(root, 'meta.qcow2'))).backingFile).not.toBe('');
  });

  test('a containerDisk as image volume gets an overlay that leaves the image alone, once', async () => {
    const image = join(deps.paths.imageVolumeDir, 'disk_0/disk/os.qcow2');
    mkdirSync(dirname(image), { recursive: true });
    qemuImg('create', '-f', 'qcow2', image, '32M');
    const vmi = vmiWith([{ name: 'root', containerDisk: { image: 'registry.example/os:v1' } }]);
    await linkImageVolumes(deps, vmi);
    await linkImageVolumes(deps, vmi);
    const images = new Map([['root', await readImageInfo(join(deps.paths.containerDiskDir, 'disk_0.img'))]]);
    await ensureContainerDiskOverlays(deps, vmi, images);
    const overlay = join(deps.paths.ephemeralDir, 'disk-data/root/disk.qcow2');
    expect(qemuInfo(overlay)['backing-filename']).toBe(join(deps.paths.containerDiskDir, 'disk_0.img'));
    expect(statSync(overlay).mode & 0o777).toBe(0o640);
    const { ino } = statSync(overlay);
    await ensureContainerDiskOverlays(deps, vmi, images);
    expect(statSync(overlay).ino).toBe(ino);
  });

  test('an emptyDisk is a sparse qcow2 of whole MiB; one that is too small is refused by name', async () => {
    await ensureEmptyDisks(deps, vmiWith([{ name: 'e', emptyDisk: { capacity: '5000k' } }]));
    const info = qemuInfo(join(deps.paths.emptyDiskDir, 'e.qcow2'));
    expect([info.format, info['virtual-size']]).toEqual(['qcow2', 4 * MIB]);
    const tooSmall = ensureEmptyDisks(deps, vmiWith([{ name: 'tiny', emptyDisk: { capacity: '1000' } }]));
    await expect(tooSmall).rejects.toThrow('the size for volume tiny is too low');
  });

  test('cloud-init finds its seed on the image, and no secret stays beside it', async () => {
    const vmi = vmiWith([
      { name: 'ci', cloudInitNoCloud: { userData: '#cloud-config\n', networkData: 'version: 2\n' } },
    ]);
    const data = await readCloudInit(deps, vmi);
    if (data === undefined) throw new Error('no seed was read');
    await writeCloudInitImage(deps, vmi, data, emptyDomainSpec());
    await writeCloudInitImage(deps, vmi, data, emptyDomainSpec());
    const image = cloudInitImage(deps.paths, vmi, 'noCloud');
    expect(readIso(image, '/user-data')).toBe('#cloud-config\n');
    expect(readIso(image, '/network-config')).toBe('version: 2\n');
    expect(JSON.parse(readIso(image, '/meta-data'))).toEqual({ 'instance-id': 'f1', 'local-hostname': 'vm' });
    expect(existsSync(join(dirname(image), 'data'))).toBe(false);
    const listing = execFileSync('/usr/bin/xorriso', ['-indev', image, '-pvd_info'], {
      encoding: 'utf8',
      stdio: 'pipe',
    });
    expect(listing).toContain('cidata');
  });

  test('a config map lies on its image under its own names, links followed', async () => {
    const dir = join(deps.paths.privateDir, 'config-map/cfg');
    mkdirSync(join(dir, '..data'), { recursive: true });
    writeFileSync(join(dir, '..data/key'), 'value');
    execFileSync('/bin/ln', ['-s', '..data/key', join(dir, 'key')]);
    writeFileSync(join(dir, '-opt'), 'no option');
    await writeConfigDisks(deps, vmiWith([{ name: 'cfg', configMap: { name: 'm' } }]), false);
    const image = join(deps.paths.privateDir, 'config-map-disks/cfg.iso');
    expect([readIso(image, '/key'), readIso(image, '/-opt')]).toEqual(['value', 'no option']);
  });

  test('a migration target gets an empty image of the size of the source', async () => {
    const vmi = vmiWith([{ name: 'cfg', configMap: { name: 'm' } }]);
    vmi.status = { volumeStatus: [{ name: 'cfg', target: '', size: 374_784 }] };
    await writeConfigDisks(deps, vmi, true);
    expect(statSync(join(deps.paths.privateDir, 'config-map-disks/cfg.iso')).size).toBe(374_784);
  });

  test('an image on a claim that became larger grows to what the file system leaves of it', async () => {
    const path = join(root, 'disk.img');
    writeFileSync(path, '');
    truncateSync(path, 16 * MIB);
    const disk = { Source: { File: path }, Capacity: 64 * MIB, FilesystemOverhead: '0.055' };
    await growDisksOffline(deps, { ...emptyDomainSpec(), Devices: { Disks: [disk] } });
    expect(statSync(path).size).toBe(60 * MIB);
  });

  test.each([16, 60])(
    'a guest sees that its claim grew through the overlay that tracks its changes, over %i MiB of data',
    async (dataMiB) => {
      const [path, overlay] = [join(root, 'disk.img'), join(root, 'overlay.qcow2')];
      writeFileSync(path, '');
      truncateSync(path, 16 * MIB);
      writeFileSync(overlay, '');
      await createTrackingOverlay({ overlay, image: path, isBlockDevice: false, bytes: 16 * MIB });
      truncateSync(path, dataMiB * MIB);
      const Source = { File: overlay, DataStore: { Type: 'file', Source: { File: path } } };
      const disk = { Source, Capacity: 64 * MIB, FilesystemOverhead: '0.055' };
      await growDisksOffline(deps, { ...emptyDomainSpec(), Devices: { Disks: [disk] } });
      expect([qemuInfo(overlay)['virtual-size'], statSync(path).size]).toEqual([60 * MIB, 60 * MIB]);
    },
  );
});
