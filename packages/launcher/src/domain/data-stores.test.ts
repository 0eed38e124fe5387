import { emptyDomainSpec } from '@virtwire/vm-model';
import type { DomainDisk, DomainSpec } from '@virtwire/vm-model';
import { expect, test } from 'vitest';
import { createDataStores } from './data-stores.ts';

const withDisks = (...Disks: DomainDisk[]): DomainSpec => ({
  ...emptyDomainSpec(),
  Devices: { ...emptyDomainSpec().Devices, Disks },
});
const DataStore = { Source: { File: '/disk.img' } };
const tracked: DomainDisk = { Source: { File: '/cbt/a.qcow2', DataStore } };
const told: DomainDisk = { Source: { File: '/cbt/a.qcow2' }, Target: { Device: 'vda' } };

test('a disk of which libvirt leaves out the data store has it again', () => {
  const stores = createDataStores();
  stores.remember(withDisks(tracked));
  expect(stores.complete(withDisks(told, { Source: { File: '/other' } })).Devices.Disks).toEqual([
    { ...told, Source: { ...told.Source, DataStore } },
    { Source: { File: '/other' } },
  ]);
});

test('what libvirt says counts', () => {
  const stores = createDataStores();
  stores.remember(withDisks(tracked));
  const own = { Source: { File: '/cbt/a.qcow2', DataStore: { Source: { Dev: '/dev/a' } } } };
  expect(stores.complete(withDisks(own)).Devices.Disks).toEqual([own]);
});

test('a domain without tracked disks stays the same object', () => {
  const stores = createDataStores();
  const spec = withDisks(told);
  expect(stores.complete(spec)).toBe(spec);
});
