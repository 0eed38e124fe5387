import { parseVmiJson } from '@virtwire/vm-model';
import type { DomainDisk, Vmi } from '@virtwire/vm-model';
import { describe, expect, test } from 'vitest';
import { classifyVolumes, completionBudget, disksToCopy, hasVfio, isBlockMigration, isPlugged } from './volumes.ts';

function vmiOf(volumes: readonly object[], status: object = {}, domain: object = {}): Vmi {
  const metadata = { name: 'vm', namespace: 'ns', uid: 'u' };
  const spec = { domain: { devices: {}, ...domain }, volumes };
  return parseVmiJson(JSON.stringify({ metadata, spec, status }));
}
const move = (volumeName: string, claim: object = {}) => ({
  volumeName,
  sourcePVCInfo: claim,
  destinationPVCInfo: claim,
});

test.each<[string, object, object, string | undefined]>([
  ['a claim', { persistentVolumeClaim: { claimName: 'c' } }, {}, 'shared'],
  ['a data volume', { dataVolume: { name: 'c' } }, {}, 'shared'],
  ['a claim that moves', { persistentVolumeClaim: { claimName: 'c' } }, { migratedVolumes: [move('v')] }, 'local'],
  ['a host disk', { hostDisk: { path: '/d' } }, {}, undefined],
  ['a shared host disk', { hostDisk: { path: '/d', shared: true } }, {}, 'shared'],
  ['a host disk that moves', { hostDisk: { path: '/d', shared: true } }, { migratedVolumes: [move('v')] }, 'local'],
  ['a config map', { configMap: { name: 'm' } }, {}, 'generated'],
  ['cloud-init', { cloudInitNoCloud: {} }, {}, 'generated'],
  ['a container disk', { containerDisk: { image: 'i' } }, {}, 'generated'],
  ['an empty disk', { emptyDisk: { capacity: '1Gi' } }, {}, undefined],
])('%s is %4$s', (_title, source, status, found) => {
  expect(classifyVolumes(vmiOf([{ name: 'v', ...source }], status)).get('v')).toBe(found);
});

test('copied are disks with bytes of their own, unless the target sees them or nobody wrote them', () => {
  const disk = (name: string, target: string, more: Partial<DomainDisk> = {}): DomainDisk => ({
    ...{ Type: 'file', Device: 'disk', Alias: { Name: name }, Target: { Device: target } },
    ...more,
  });
  const vmi = vmiOf([
    { name: 'claim', persistentVolumeClaim: { claimName: 'c' } },
    { name: 'map', configMap: { name: 'm' } },
    { name: 'empty', emptyDisk: { capacity: '1Gi' } },
  ]);
  const disks = [
    disk('claim', 'vda'),
    disk('map', 'vdb', { ReadOnly: {} }),
    disk('empty', 'vdc', { Type: 'block' }),
    disk('other', 'vdd', { ReadOnly: {} }),
    disk('map', 'sda', { Device: 'cdrom' }),
    disk('net', 'vde', { Type: 'network' }),
  ];
  expect(disksToCopy(vmi, disks)).toEqual(['vdb', 'vdc']);
});

describe('the budget', () => {
  const claim = { capacity: { storage: '2G' }, requests: { storage: '1500M' } };
  test.each<[string, object, object, bigint, number]>([
    ['counts memory in 10^9 bytes, rounded up', { memory: { guest: '1Gi' } }, {}, 0n, 20],
    ['takes the request where the guest says nothing', { resources: { requests: { memory: '3G' } } }, {}, 0n, 30],
    ['leaves out ephemeral files of a live migration', { memory: { guest: '1G' } }, {}, 5n, 10],
    ['counts them where disks are copied', { memory: { guest: '1G' } }, { migrationMethod: 'BlockMigration' }, 5n, 20],
    ['counts volumes that move', { memory: { guest: '1G' } }, { migratedVolumes: [move('v', claim)] }, 0n, 30],
    ['is nothing for nothing', {}, {}, 0n, 0],
  ])('%s', (_title, domain, status, files, seconds) => {
    expect(completionBudget(vmiOf([], status, domain), 10, files)).toBe(seconds);
  });
});

test('knows block migrations, plugged volumes and passed-through devices', () => {
  expect(isBlockMigration(vmiOf([], { migrationMethod: 'BlockMigration' }))).toBe(true);
  expect(isBlockMigration(vmiOf([], { migratedVolumes: [move('v')] }))).toBe(true);
  expect(isBlockMigration(vmiOf([], { migratedVolumes: [] }))).toBe(false);
  expect(isPlugged(vmiOf([{ name: 'v', persistentVolumeClaim: { claimName: 'c', hotpluggable: true } }]), 'v')).toBe(
    true,
  );
  expect(isPlugged(vmiOf([], { volumeStatus: [{ name: 'v', target: '', hotplugVolume: {} }] }), 'v')).toBe(true);
  expect(isPlugged(vmiOf([{ name: 'v', emptyDisk: { capacity: '1' } }]), 'v')).toBe(false);
  expect(hasVfio(vmiOf([], {}, { devices: { interfaces: [{ name: 'a', sriov: {} }] } }))).toBe(true);
  expect(hasVfio(vmiOf([], {}, { devices: { gpus: [{ name: 'a', deviceName: 'b' }] } }))).toBe(true);
  expect(hasVfio(vmiOf([]))).toBe(false);
});
