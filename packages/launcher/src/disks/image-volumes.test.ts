import { mkdirSync, mkdtempSync, readlinkSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';

import type { Vmi } from '@virtwire/vm-model';

import { DEFAULT_DOMAIN_PATHS } from '../converter/circumstances.ts';
import { linkImageVolumes } from './image-volumes.ts';
import type { DiskPaths } from './ports.ts';

let root: string;
let paths: DiskPaths;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'virtwire-images-'));
  paths = {
    ...DEFAULT_DOMAIN_PATHS,
    containerDiskDir: join(root, 'container-disks'),
    imageVolumeDir: join(root, 'images'),
    kernelBootDir: join(root, 'kernel'),
    serviceAccountDir: '',
  };
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

function put(path: string): string {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, '');
  return path;
}

function vmiWith(path?: string, firmware?: Vmi['spec']['domain']['firmware']): Vmi {
  return {
    metadata: { name: 'vm', namespace: 'ns', uid: 'u' },
    spec: {
      domain: { devices: {}, ...(firmware === undefined ? {} : { firmware }) },
      volumes: [
        { name: 'e', emptyDisk: { capacity: '1Gi' } },
        { name: 'root', containerDisk: { image: 'i', ...(path === undefined ? {} : { path }) } },
      ],
    },
  };
}

describe('image volumes', () => {
  test('the one file of the disk folder is taken, by the place of the volume among all', async () => {
    const image = put(join(paths.imageVolumeDir, 'disk_1/disk/os.qcow2'));
    await linkImageVolumes({ paths }, vmiWith());
    expect(readlinkSync(join(paths.containerDiskDir, 'disk_1.img'))).toBe(image);
  });

  test('a named path and the files of a kernel boot are taken', async () => {
    put(join(paths.imageVolumeDir, 'disk_1/img/a.raw'));
    const kernel = put(join(paths.kernelBootDir, 'boot/vmlinuz'));
    const firmware = { kernelBoot: { container: { kernelPath: '/boot/vmlinuz' } } };
    await linkImageVolumes({ paths }, vmiWith('/img/a.raw', firmware));
    expect(readlinkSync(join(paths.containerDiskDir, 'kernel-boot/vmlinuz'))).toBe(kernel);
  });

  test.each<[string, () => void, string | undefined, RegExp]>([
    ['no folder', () => undefined, undefined, /failed to find disk file from ImageVolume: open .*no such file/],
    [
      'an empty folder',
      () => mkdirSync(join(paths.imageVolumeDir, 'disk_1/disk'), { recursive: true }),
      undefined,
      /no file found in folder .*disk_1\/disk, no disk present/,
    ],
    [
      'two files',
      () => [1, 2].forEach((n) => put(join(paths.imageVolumeDir, `disk_1/disk/${String(n)}`))),
      undefined,
      /more than one file found in folder .*, only one disk is allowed/,
    ],
    [
      'FM-13.2 a path that leads out',
      () => undefined,
      '/../../secret',
      /^failed to find disk file .* leaves the image/,
    ],
    [
      'a named file that is missing',
      () => undefined,
      '/a.raw',
      /^failed to find disk file from ImageVolume: lstat .*no such file/,
    ],
  ])('%s is refused', async (_title, setUp, path, message) => {
    setUp();
    await expect(linkImageVolumes({ paths }, vmiWith(path))).rejects.toThrow(message);
  });

  test('a kernel that its image lacks is told from a disk that is lacking', async () => {
    put(join(paths.imageVolumeDir, 'disk_1/disk/os.qcow2'));
    const firmware = { kernelBoot: { container: { kernelPath: '/boot/vmlinuz' } } };
    const message = /^error getting kernel boot artifact path from ImageVolume: lstat .*no such file/;
    await expect(linkImageVolumes({ paths }, vmiWith(undefined, firmware))).rejects.toThrow(message);
  });

  test('FM-13.1 a link inside a user’s image is not followed', async () => {
    put(join(paths.imageVolumeDir, 'disk_1/keep'));
    symlinkSync('/etc', join(paths.imageVolumeDir, 'disk_1/img'));
    await expect(linkImageVolumes({ paths }, vmiWith('/img/passwd'))).rejects.toThrow('is a link');
  });

  test('a link that leads elsewhere is not replaced silently', async () => {
    put(join(paths.imageVolumeDir, 'disk_1/disk/os.qcow2'));
    mkdirSync(paths.containerDiskDir, { recursive: true });
    symlinkSync('/elsewhere', join(paths.containerDiskDir, 'disk_1.img'));
    await expect(linkImageVolumes({ paths }, vmiWith())).rejects.toThrow('leads elsewhere');
  });
});
