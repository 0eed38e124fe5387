import { mkdirSync, mkdtempSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { sampleVmi } from '../../testing/samples.ts';
import { hasContainerDisks, parseImageHeader, readDisksInfo } from './disks-info.ts';

let root = '';
beforeEach(() => {
  root = mkdtempSync('/tmp/virtwire-disks-');
  mkdirSync(join(root, 'run/kubevirt/container-disks'), { recursive: true });
  mkdirSync(join(root, 'var'));
  symlinkSync('/run', join(root, 'var/run'));
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

const imageOf = (index: number): string => join(root, `run/kubevirt/container-disks/disk_${index}.img`);
const vmi = sampleVmi('Scheduled', (one) => {
  one.spec.volumes = [
    { name: 'state', emptyDisk: { capacity: '1Gi' } },
    { name: 'root', containerDisk: { image: 'a' } },
    { name: 'cd', containerDisk: { image: 'b' } },
    { name: 'late', containerDisk: { image: 'c' } },
  ];
});

/** The head of a qcow2 image, as qemu-img writes it. */
function qcow2(virtualSize: bigint, backing = ''): Buffer {
  const header = Buffer.alloc(512);
  header.write('QFI\xfb', 0, 'latin1');
  header.writeUInt32BE(3, 4);
  header.writeBigUInt64BE(backing === '' ? 0n : 200n, 8);
  header.writeUInt32BE(backing.length, 16);
  header.writeBigUInt64BE(virtualSize, 24);
  header.write(backing, 200);
  return header;
}

test('each image is described by its volume, found through the links of the pod', () => {
  writeFileSync(imageOf(1), qcow2(1n << 40n, 'base.raw'));
  writeFileSync(imageOf(2), 'raw');
  truncateSync(imageOf(2), 1 << 20);
  const infos = readDisksInfo(vmi, { pid: 1, ppid: 0, rootPath: root });
  expect([...infos.keys()]).toEqual(['root', 'cd']);
  expect(infos.get('root')).toMatchObject({ format: 'qcow2', backingFile: 'base.raw', virtualSize: 1n << 40n });
  expect(infos.get('cd')).toMatchObject({ format: 'raw', backingFile: '', virtualSize: 1n << 20n });
  expect(infos.get('cd')?.actualSize).toBeLessThan(1n << 20n);
  expect(hasContainerDisks(vmi)).toBe(true);
});

test('a link out of the pod and what is no file are left out', () => {
  symlinkSync('/etc/hostname', imageOf(1));
  mkdirSync(imageOf(2));
  expect([...readDisksInfo(vmi, { pid: 1, ppid: 0, rootPath: root })]).toEqual([]);
});

test('a header that lies gives no error and no text from outside of it', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 600 }), fc.boolean(), (bytes, hasMagic) => {
      const header = Buffer.concat([hasMagic ? Buffer.from('514649fb00000003', 'hex') : Buffer.alloc(0), bytes]);
      const info = parseImageHeader(header, 7n);
      expect(['qcow2', 'raw']).toContain(info.format);
      expect(Buffer.byteLength(info.backingFile)).toBeLessThan(4_096);
    }),
  );
});
