import { createLogger } from '@virtwire/telemetry';
import { parseDomainXml, parseVmiJson } from '@virtwire/vm-model';
import type { DomainSpec } from '@virtwire/vm-model';
import { describe, expect, test } from 'vitest';
import type { BlockInfo } from './libvirt-port.ts';
import type { DeviceUpdaterDeps, DiskGrowth } from './update-devices.ts';
import { updateDevices } from './update-devices.ts';

const GIB = 1n << 30n;
const DOMAIN = { name: 'ns1_vm', uuid: '', id: 1 };
const log = createLogger('virt-launcher', { destination: { write: () => undefined } });
const vmi = parseVmiJson('{"metadata":{"name":"vm","namespace":"ns1","uid":"u"},"spec":{"domain":{"devices":{}}}}');
const spec = parseDomainXml(
  '<domain><devices><disk type="file" device="disk"><source file="/d.img"/><target dev="vda" bus="virtio"/></disk></devices></domain>',
);
const withClaim = (capacity: bigint): DomainSpec => ({
  ...spec,
  Devices: { Disks: (spec.Devices.Disks ?? []).map((disk) => ({ ...disk, Capacity: capacity })) },
});

/** Storage on which a disk can have some size, and libvirt's view of it. */
function createStorage() {
  const calls: string[] = [];
  const storage = {
    calls,
    possible: GIB as bigint | undefined,
    block: { capacity: GIB, allocation: 0n, physical: GIB } as BlockInfo,
    resizeFailure: undefined as Error | undefined,
  };
  const refuse = (): Promise<never> => Promise.reject(new Error('nothing is plugged here'));
  const deps: DeviceUpdaterDeps<undefined> = {
    libvirt: {
      attachDevice: refuse,
      detachDevice: refuse,
      updateDevice: refuse,
      getBlockInfo(_domain, path) {
        calls.push(`ask ${path}`);
        return Promise.resolve(storage.block);
      },
      blockResize(_domain, path, size) {
        calls.push(`resize ${path} ${String(size / GIB)}`);
        return storage.resizeFailure === undefined ? Promise.resolve() : Promise.reject(storage.resizeFailure);
      },
    },
    devices: {
      isReady: () => Promise.resolve(true),
      completeDisk: refuse,
      discardDisk: refuse,
      completeInterfaces: refuse,
      possibleSize: () => Promise.resolve(storage.possible),
      growth(disk, { capacity }): Promise<DiskGrowth | undefined> {
        const bytes = BigInt(disk.Capacity ?? 0);
        return Promise.resolve(bytes > capacity ? { bytes, flags: 1 } : undefined);
      },
    },
    hotplugDir: '/hotplug/',
    sizes: new Map(),
  };
  const sync = (wanted: DomainSpec): Promise<boolean> =>
    updateDevices(deps, { vmi, domain: DOMAIN, live: spec, wanted, options: undefined, log });
  return { storage, sync };
}

describe('FM-4.7 libvirt is asked about a disk', () => {
  test('once, as long as nothing has grown', async () => {
    const { storage, sync } = createStorage();
    for (let i = 0; i < 100; i++) await sync(withClaim(GIB));
    expect(storage.calls).toEqual(['ask /d.img']);
  });

  test('again when the disk may be larger, which makes it larger', async () => {
    const { storage, sync } = createStorage();
    await sync(withClaim(GIB));
    storage.possible = 2n * GIB;
    await sync(withClaim(2n * GIB));
    await sync(withClaim(2n * GIB));
    expect(storage.calls).toEqual(['ask /d.img', 'ask /d.img', 'resize /d.img 2']);
  });

  test('until a resize that failed gets through', async () => {
    const { storage, sync } = createStorage();
    storage.possible = 2n * GIB;
    storage.resizeFailure = new Error('no space');
    await sync(withClaim(2n * GIB));
    storage.resizeFailure = undefined;
    await sync(withClaim(2n * GIB));
    await sync(withClaim(2n * GIB));
    expect(storage.calls.filter((call) => call.startsWith('resize'))).toEqual(['resize /d.img 2', 'resize /d.img 2']);
    expect(storage.calls.length).toBe(4);
  });

  test('until it knows a capacity', async () => {
    const { storage, sync } = createStorage();
    storage.block = { capacity: 0n, allocation: 0n, physical: 0n };
    await sync(withClaim(GIB));
    storage.block = { capacity: GIB, allocation: 0n, physical: GIB };
    for (let i = 0; i < 3; i++) await sync(withClaim(GIB));
    expect(storage.calls).toEqual(['ask /d.img', 'ask /d.img']);
  });

  test('each time when only libvirt can tell', async () => {
    const { storage, sync } = createStorage();
    storage.possible = undefined;
    for (let i = 0; i < 3; i++) await sync(withClaim(GIB));
    expect(storage.calls.length).toBe(3);
  });

  test('anew when it went and came back', async () => {
    const { storage, sync } = createStorage();
    await sync(withClaim(GIB));
    await sync({ ...spec, Devices: {} });
    await sync(withClaim(GIB));
    expect(storage.calls).toEqual(['ask /d.img', 'ask /d.img']);
  });
});
