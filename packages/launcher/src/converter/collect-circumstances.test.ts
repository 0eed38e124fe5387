import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';

import { vmiWith } from '../testing/conversion.ts';
import { DEFAULT_DOMAIN_PATHS } from './circumstances.ts';
import { createCircumstanceCollector, type LauncherFacts, readPodCpuSet } from './collect-circumstances.ts';
import { parseCpuSet } from './cpu-set.ts';

const REQUEST = {
  allowEmulation: true,
  options: undefined,
  isMigrationTarget: false,
  cbtOverlays: new Map<string, string>(),
};

let root: string;
let facts: LauncherFacts;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'virtwire-facts-'));
  facts = {
    hostArchitecture: 'amd64',
    hypervisor: 'kvm',
    hypervisorDeviceAvailable: false,
    allowCrossArchEmulation: true,
    firmwareAutoSelection: false,
    firmwareDir: join(root, 'firmware'),
    logVerbosity: 2,
    paths: {
      ...DEFAULT_DOMAIN_PATHS,
      privateDir: join(root, 'private'),
      containerDiskDir: join(root, 'container-disks'),
      hotplugDir: join(root, 'hotplug'),
    },
    environment: {},
    hasLibvirtHookServer: false,
  };
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

const readNoCpus = (): Promise<readonly number[]> => Promise.resolve([0]);
const image = { format: 'raw', backingFile: '', actualSize: 1, virtualSize: 1 };

describe('circumstances of a pod', () => {
  test('every container disk is looked at once in a launcher’s life', async () => {
    const asked: string[] = [];
    const info = (path: string): Promise<typeof image> => {
      asked.push(path);
      return Promise.resolve(image);
    };
    const collector = createCircumstanceCollector({ images: { info }, readPodCpuSet: readNoCpus }, facts);
    const vmi = vmiWith({ spec: { volumes: [{ name: 'a', containerDisk: { image: 'i' } }] } });
    await collector.collect(vmi, REQUEST);
    const again = await collector.collect(vmi, REQUEST);
    expect(asked).toEqual([join(root, 'container-disks/disk_0.img')]);
    expect(again.containerDisks.get('a')).toEqual(image);
  });

  test('a container disk that cannot be read is an error that names why', async () => {
    const info = (): Promise<typeof image> => Promise.reject(new Error('open /x: no such file or directory'));
    const collector = createCircumstanceCollector({ images: { info }, readPodCpuSet: readNoCpus }, facts);
    const vmi = vmiWith({ spec: { volumes: [{ name: 'a', containerDisk: { image: 'i' } }] } });
    await expect(collector.collect(vmi, REQUEST)).rejects.toThrow(
      'failed to get container disk info: open /x: no such file or directory',
    );
  });

  test('a CPU set that cannot be read is an error', async () => {
    const readPodCpuSet = (): Promise<never> => Promise.reject(new Error('gone'));
    const collector = createCircumstanceCollector(
      { images: { info: () => Promise.resolve(image) }, readPodCpuSet },
      facts,
    );
    await expect(collector.collect(vmiWith({}), REQUEST)).rejects.toThrow('failed to read pod cpuset: gone');
  });

  test('firmware is what lies in its directory; block sizes are those of the file system', async () => {
    mkdirSync(facts.firmwareDir);
    writeFileSync(join(facts.firmwareDir, 'OVMF_CODE.fd'), '');
    const file = join(facts.paths.privateDir, 'vmi-disks/a/x.img');
    mkdirSync(join(file, '..'), { recursive: true });
    writeFileSync(file, '');
    const collector = createCircumstanceCollector(
      { images: { info: () => Promise.resolve(image) }, readPodCpuSet: readNoCpus },
      facts,
    );
    const disks = [{ name: 'a', disk: { bus: 'virtio' as const }, blockSize: { matchVolume: {} } }];
    const volumes = [{ name: 'a', hostDisk: { path: '/data/x.img', type: 'Disk' } }];
    const found = await collector.collect(vmiWith({ domain: { devices: { disks } }, spec: { volumes } }), REQUEST);
    expect([...found.firmwareFiles]).toEqual(['OVMF_CODE.fd']);
    expect(found.blockSizes.get(file)).toMatchObject({ logical: expect.any(Number) as number });
    expect(found.blockSizes.get(join(facts.paths.hotplugDir, 'a.img'))).toMatch(/ENOENT/);
    expect(found.blockVolumes.size).toBe(0);
  });
});

describe('CPU lists', () => {
  test.each([
    ['0-3,8', [0, 1, 2, 3, 8]],
    ['5', [5]],
    ['', []],
  ])('%s', (text, expected) => {
    expect(parseCpuSet(text)).toEqual(expected);
  });

  test('nonsense is refused', () => {
    expect(() => parseCpuSet('a-b')).toThrow('is no CPU list');
  });

  test('this process may use some CPU', async () => {
    expect((await readPodCpuSet()).length).toBeGreaterThan(0);
  });
});
