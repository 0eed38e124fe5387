import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DomainDeviceModifyFlags as Modify, DomainXMLFlags, ErrorNumber } from '../src/index.ts';
import { describe, expect, test } from 'vitest';
import { domainXml, Recording, useDaemon } from './fixture.ts';
import type { HarnessKind } from './harness.ts';

/** Devices that come and go. */
export function testDevices(kind: HarnessKind): void {
  describe('devices', () => {
    const daemon = useDaemon(kind);

    test('attaches and detaches a disk in the running domain and its definition, with events', async () => {
      const connection = await daemon.connect();
      const path = join(daemon.harness.directory, 'disk.img');
      writeFileSync(path, Buffer.alloc(1 << 20));
      // A session daemon runs under another user.
      chmodSync(path, 0o666);
      const usb = "<controller type='usb' model='qemu-xhci'/>";
      const domain = await connection.defineDomainXml(domainXml('disks', { devices: usb }));
      await domain.create();
      const added = new Recording<string>();
      const removed = new Recording<string>();
      await connection.onDomainEvent('deviceAdded', (event) => added.add(event.devAlias));
      await connection.onDomainEvent('deviceRemoved', (event) => removed.add(event.devAlias));
      const disk = `<disk type='file' device='disk'><driver name='qemu' type='raw'/><source file='${path}'/><target dev='sda' bus='usb'/></disk>`;

      await domain.attachDevice(disk, Modify.LIVE | Modify.CONFIG);
      expect(await added.next(1)).toEqual(['usb-disk0']);
      expect(await domain.getXmlDesc()).toContain(path);
      expect(await domain.getXmlDesc(DomainXMLFlags.INACTIVE)).toContain(path);
      await expect(domain.attachDevice(disk, Modify.LIVE)).rejects.toMatchObject({ kind: 'Daemon' });
      const info = await domain.getBlockInfo('sda');
      expect(info.capacity).toBeGreaterThan(0n);
      const [stats] = await connection.getAllDomainStats({ domains: [domain] });
      expect(stats?.params.number('block.count')).toBe(1);
      expect(stats?.params.text('block.0.name')).toBe('sda');

      await domain.detachDevice(disk, Modify.LIVE | Modify.CONFIG);
      expect(await removed.next(1)).toEqual(['usb-disk0']);
      expect(await domain.getXmlDesc()).not.toContain(path);
      expect(await domain.getXmlDesc(DomainXMLFlags.INACTIVE)).not.toContain(path);
      await expect(domain.detachDevice(disk, Modify.LIVE)).rejects.toMatchObject({
        code: ErrorNumber.DEVICE_MISSING,
        message: 'device not found: disk sda not found',
      });
    });

    test('refuses to change the running devices of a domain that is off', async () => {
      const connection = await daemon.connect();
      const domain = await connection.defineDomainXml(domainXml('off'));
      await expect(domain.attachDevice("<input type='tablet' bus='usb'/>", Modify.LIVE)).rejects.toMatchObject({
        code: ErrorNumber.OPERATION_INVALID,
        message: 'Requested operation is not valid: domain is not running',
      });
    });
  });
}
