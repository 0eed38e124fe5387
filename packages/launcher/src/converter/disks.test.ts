import { describe, expect, test } from 'vitest';

import { type DomainDisk, type VmiDisk, type Volume, parseVmiJson } from '@virtwire/vm-model';

import { type ConversionChange, convertWith } from '../testing/conversion.ts';
import { circumstancesFromJson } from './circumstances-json.ts';
import { convertVmi } from './convert.ts';
import { resolveConverterContext } from './resolve-context.ts';

function disksOf(
  disks: readonly VmiDisk[],
  change: ConversionChange = {},
  source: Omit<Volume, 'name'> = { emptyDisk: { capacity: '1Gi' } },
): readonly DomainDisk[] {
  const volumes = change.spec?.volumes ?? disks.map(({ name }) => ({ name, ...source }));
  const devices = { ...change.domain?.devices, disks: [...disks] };
  const spec = convertWith({
    ...change,
    domain: { ...change.domain, devices },
    spec: { ...change.spec, volumes },
  });
  return spec.Devices.Disks ?? [];
}

const virtio = (name: string): VmiDisk => ({ name, disk: { bus: 'virtio' } });

describe('names in the guest', () => {
  test('a disk keeps the name that its status has, others take the first free one', () => {
    const status = {
      volumeStatus: [
        { name: 'b', target: 'vda' },
        { name: 'a', target: '' },
        { name: 'c', target: '' },
      ],
    };
    const names = disksOf([virtio('a'), virtio('b'), virtio('c')], { status }).map(({ Target }) => Target?.Device);
    expect(names).toEqual(['vdb', 'vda', 'vdc']);
  });

  test('after z comes aa, and after az ba', () => {
    const disks = Array.from({ length: 53 }, (_none, index) => virtio(`d${String(index)}`));
    const names = disksOf(disks).map(({ Target }) => Target?.Device);
    expect([names[25], names[26], names[51], names[52]]).toEqual(['vdz', 'vdaa', 'vdaz', 'vdba']);
  });

  test('a disk that is not attachable yet is left out but keeps its name', () => {
    const disks = [virtio('a'), virtio('late'), virtio('c')];
    const status = {
      volumeStatus: [
        { name: 'a', target: '' },
        { name: 'late', target: '', phase: 'Pending', hotplugVolume: {} },
        { name: 'c', target: '' },
      ],
    };
    const volumes = disks.map(({ name }) => ({ name, persistentVolumeClaim: { claimName: name } }));
    const result = disksOf(disks, { status, spec: { volumes } });
    expect(result.map(({ Alias, Target }) => [Alias?.Name, Target?.Device])).toEqual([
      ['a', 'vda'],
      ['c', 'vdc'],
    ]);
  });
});

describe('sources', () => {
  const claim = { persistentVolumeClaim: { claimName: 'c' } };

  test('changed block tracking puts an overlay before the data of a block claim', () => {
    const circumstances = { cbtOverlays: new Map([['a', '/cbt/a.qcow2']]), blockVolumes: new Set(['a']) };
    const [disk] = disksOf([virtio('a')], { circumstances }, claim);
    expect(disk).toMatchObject({
      Type: 'file',
      Driver: { Type: 'qcow2', Discard: 'unmap' },
      Source: {
        File: '/cbt/a.qcow2',
        Name: 'a',
        DataStore: { Type: 'block', Format: { Type: 'raw' }, Source: { Dev: '/dev/a' } },
      },
    });
  });

  test('a host disk with changed block tracking keeps its data in its file', () => {
    const circumstances = { cbtOverlays: new Map([['a', '/cbt/a.qcow2']]) };
    const [disk] = disksOf([virtio('a')], { circumstances }, { hostDisk: { path: '/data/x.img', type: 'Disk' } });
    expect(disk?.Source?.DataStore?.Source?.File).toBe('/var/run/kubevirt-private/vmi-disks/a/x.img');
    expect(disk?.Source).not.toHaveProperty('Name');
  });

  test('a preallocated volume is never told to give its blocks back', () => {
    const options = { PreallocatedVolumes: ['a'] };
    expect(disksOf([virtio('a')], { options }, claim)[0]?.Driver?.Discard).toBeUndefined();
    expect(disksOf([virtio('b')], { options }, claim)[0]?.Driver?.Discard).toBe('unmap');
  });

  test.each([
    ['a memory dump volume with a disk', { memoryDump: { claimName: 'c' } }, 'disk a references an unsupported source'],
    ['a containerDisk that nobody inspected', { containerDisk: { image: 'i' } }, 'no disk info provided for volume a'],
  ])('%s is refused', (_title, source, message) => {
    const circumstances = { containerDisks: new Map() };
    expect(() => disksOf([virtio('a')], { circumstances }, source)).toThrow(message);
  });

  test('a hot-plugged volume must be a claim', () => {
    const status = { volumeStatus: [{ name: 'a', target: '', phase: 'Ready', hotplugVolume: {} }] };
    const disks = (): unknown => disksOf([virtio('a')], { status }, { configMap: { name: 'm' } });
    expect(disks).toThrow('hotplug disk a references an unsupported source');
  });

  test.each(['vmdk', 'qcow', 'luks'])('a containerDisk of format %s is refused', (format) => {
    const info = { format, backingFile: '', actualSize: 0, virtualSize: 0 };
    const circumstances = { containerDisks: new Map([['a', info]]) };
    const disks = (): unknown => disksOf([virtio('a')], { circumstances }, { containerDisk: { image: 'i' } });
    expect(disks).toThrow(`invalid image in containerDisk a: unsupported image format: ${format}`);
  });
});

describe('options', () => {
  test('a bad PCI address names the disk', () => {
    const disk = { name: 'a', disk: { bus: 'virtio' as const, pciAddress: '00:1' } };
    expect(() => disksOf([disk])).toThrow('failed to configure disk a: failed to parse pci address 00:1');
  });

  test.each([
    [
      'copies the known size over a missing one',
      { logical: 0, physical: 4096, discardGranularity: 0 },
      [4096, 4096, 0],
    ],
    [
      'replaces a granularity that does not fit',
      { logical: 4096, physical: 8192, discardGranularity: 512 },
      [4096, 8192, 8192],
    ],
    ['keeps what fits', { logical: 512, physical: 4096, discardGranularity: 1024 }, [512, 4096, 1024]],
  ])('matching the volume %s', (_title, sizes, expected) => {
    const circumstances = { blockVolumes: new Set(['a']), blockSizes: new Map([['/dev/a', sizes]]) };
    const disk = { ...virtio('a'), blockSize: { matchVolume: {} } };
    const [result] = disksOf([disk], { circumstances }, { persistentVolumeClaim: { claimName: 'c' } });
    const { LogicalBlockSize, PhysicalBlockSize, DiscardGranularity } = result?.BlockIO ?? {};
    expect([LogicalBlockSize, PhysicalBlockSize, DiscardGranularity]).toEqual(expected);
  });

  test.each([
    ['a claim on a device', { persistentVolumeClaim: { claimName: 'c' } }, '/dev/a', ['a']],
    [
      'a claim on a file system',
      { persistentVolumeClaim: { claimName: 'c' } },
      '/var/run/kubevirt-private/vmi-disks/a/disk.img',
      [],
    ],
    ['a host disk', { hostDisk: { path: '/x.img', type: 'Disk' } }, '/var/run/kubevirt-private/vmi-disks/a/x.img', []],
  ] as const)('matching a volume whose changes are tracked goes by %s, not by the overlay', (...given) => {
    const [, source, path, blockVolumes] = given;
    const circumstances = {
      blockVolumes: new Set<string>(blockVolumes),
      blockSizes: new Map([[path, { logical: 4096, physical: 4096, discardGranularity: 0 }]]),
      cbtOverlays: new Map([['a', '/cbt/a.qcow2']]),
    };
    const [disk] = disksOf([{ ...virtio('a'), blockSize: { matchVolume: {} } }], { circumstances }, source);
    expect(disk?.Source?.File).toBe('/cbt/a.qcow2');
    expect(disk?.BlockIO?.LogicalBlockSize).toBe(4096);
  });

  test('matching a volume whose storage says nothing is refused with the reason', () => {
    const circumstances = { blockVolumes: new Set(['a']), blockSizes: new Map([['/dev/a', 'no such device']]) };
    const disk = { ...virtio('a'), blockSize: { matchVolume: {} } };
    expect(() => disksOf([disk], { circumstances }, { persistentVolumeClaim: { claimName: 'c' } })).toThrow(
      'failed to configure disk with block size detection enabled: no such device',
    );
  });

  test('s390x refuses blocks above 4096', () => {
    const context = { hostArchitecture: 's390x' };
    const disk = { ...virtio('a'), blockSize: { custom: { logical: 8192, physical: 8192 } } };
    expect(() => disksOf([disk], { context })).toThrow(
      'custom block size (logical=8192, physical=8192) exceeds the maximum supported size of 4096 for architecture s390x',
    );
  });
});

test('a disk of no kind, which admission did not see, has neither a name nor blocks to give back', () => {
  const vmi = parseVmiJson(
    JSON.stringify({
      spec: { domain: { devices: { disks: [{ name: 'a' }] } }, volumes: [{ name: 'a', configMap: { name: 'm' } }] },
    }),
  );
  const context = resolveConverterContext(vmi, circumstancesFromJson(vmi, {}, {}));
  const [disk] = convertVmi(vmi, context).Spec.Devices.Disks ?? [];
  expect(disk?.Target?.Device).toBeUndefined();
  expect(disk?.Driver?.Discard).toBeUndefined();
});

describe('IO threads', () => {
  const dedicated = (name: string): VmiDisk => ({ ...virtio(name), dedicatedIOThread: true });

  test.each([
    ['shared: one for all', { ioThreadsPolicy: 'shared' as const }, [1, 1, 1], 1],
    ['auto: two per CPU', { ioThreadsPolicy: 'auto' as const, resources: { requests: { cpu: '1' } } }, [1, 2, 1], 2],
  ])('%s', (_title, domain, ids, total) => {
    const devices = { disks: [virtio('a'), virtio('b'), virtio('c')] };
    const volumes = devices.disks.map(({ name }) => ({ name, emptyDisk: { capacity: '1Gi' } }));
    const spec = convertWith({ domain: { ...domain, devices }, spec: { volumes } });
    expect(spec.Devices.Disks?.map(({ Driver }) => Driver?.IOThread)).toEqual(ids);
    expect(spec.IOThreads?.IOThreads).toBe(total);
  });

  test.each(['shared', 'auto', 'supplementalPool'] as const)(
    'a policy of %s makes no threads for a VM without disks, and has none to pin',
    (ioThreadsPolicy) => {
      expect(convertWith({ domain: { ioThreadsPolicy } })).not.toHaveProperty('IOThreads');
      const pinned = {
        domain: { ioThreadsPolicy, cpu: { cores: 1, dedicatedCpuPlacement: true } },
        context: { podCPUSet: [0] },
        options: { topology: { numaCells: [{ id: 0, cpus: [{ id: 0 }] }] } },
      };
      expect(() => convertWith(pinned)).toThrow('domain is missing IOThreads');
    },
  );

  test('dedicated threads come after the shared ones', () => {
    const result = disksOf([dedicated('a'), virtio('b'), dedicated('c')]);
    expect(result.map(({ Driver }) => Driver?.IOThread)).toEqual([2, 1, 3]);
  });

  test('a supplemental pool serves every virtio disk and leaves the SCSI controller alone', () => {
    const domain = { ioThreadsPolicy: 'supplementalPool' as const, ioThreads: { supplementalPoolThreadCount: 2 } };
    const disks: VmiDisk[] = [virtio('a'), { name: 'b', disk: { bus: 'scsi' }, dedicatedIOThread: true }];
    const volumes = disks.map(({ name }) => ({ name, emptyDisk: { capacity: '1Gi' } }));
    const spec = convertWith({ domain: { ...domain, devices: { disks } }, spec: { volumes } });
    expect(spec.Devices.Disks?.[0]?.Driver?.IOThreads?.IOThread).toEqual([{ Id: 1 }, { Id: 2 }]);
    expect(spec.Devices.Controllers?.find(({ Type }) => Type === 'scsi')).not.toHaveProperty('Driver');
    expect(spec.IOThreads?.IOThreads).toBe(2);
  });
});
