import { chownSync, mkdirSync, readdirSync, readlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { unwrap } from '@virtwire/shared-proto';
import { parseVmiJson, renderVmiJson } from '@virtwire/vm-model';
import type { Vmi } from '@virtwire/vm-model';
import { expect, test } from 'vitest';
import { createVmi, requestOf } from './support/guest.ts';
import type { LauncherPod } from './support/sandbox.ts';
import { startLauncherPod } from './support/sandbox.ts';

const UID = '7a1b2c3d-0000-4000-8000-000000000043';
const SYNCS = 1_000;

/** A VM with a claim for its disk. */
function createVmiWithDisk(phase: string, storage: string): Vmi {
  const vmi = JSON.parse(renderVmiJson(createVmi({ name: 'vm1', uid: UID, phase }))) as {
    spec: { volumes?: object[]; domain: { devices: { disks?: object[] } } };
    status: { volumeStatus?: object[] };
  };
  const claim = { claimName: 'claim', capacity: { storage }, requests: { storage } };
  vmi.spec.domain.devices.disks = [{ name: 'data', disk: { bus: 'virtio' } }];
  vmi.spec.volumes = [{ name: 'data', persistentVolumeClaim: { claimName: 'claim' } }];
  const persistentVolumeClaimInfo = { ...claim, volumeMode: 'Filesystem', filesystemOverhead: '0' };
  vmi.status.volumeStatus = [{ name: 'data', target: '', persistentVolumeClaimInfo }];
  return parseVmiJson(JSON.stringify(vmi));
}

function provideDisk(pod: LauncherPod): void {
  const dir = join(pod.root, 'kubevirt-private/vmi-disks/data');
  mkdirSync(dir, { recursive: true });
  writeFileSync(join(dir, 'disk.img'), '');
  truncateSync(join(dir, 'disk.img'), 8 << 20);
  chownSync(join(dir, 'disk.img'), 107, 107);
}

/** What a process has open, without the numbers that tell one socket from another. */
function openFilesOf(pid: number): readonly string[] {
  const dir = `/proc/${String(pid)}/fd`;
  return readdirSync(dir)
    .flatMap((fd) => {
      try {
        return [readlinkSync(join(dir, fd)).replace(/\d+/g, 'N')];
      } catch {
        return [];
      }
    })
    .sort();
}

test(`FM-9.8 ${SYNCS} syncs of a running VM leave no open file, in the launcher or in libvirt`, async () => {
  await using pod = await startLauncherPod(['--name', 'vm1', '--namespace', 'default', '--uid', UID]);
  await pod.ear.open();
  await pod.waitUntilReady();
  provideDisk(pod);
  using client = await pod.connect();
  unwrap(await client.syncVirtualMachine(requestOf(createVmiWithDisk('Scheduled', '16Mi')), { timeoutMs: 60_000 }));
  await pod.ear.hear('Running', (e) => e.domain.Status.Status === 'Running');
  const sync = async (storage: string) =>
    unwrap(await client.syncVirtualMachine(requestOf(createVmiWithDisk('Running', storage))));
  const resizes = (): number => pod.logs.filter(({ msg }) => String(msg).startsWith('resizing disk data')).length;
  await sync('16Mi');
  const seen = (): readonly string[][] => [pod.launcherPid(), pod.daemonPid() ?? 0].map((pid) => [...openFilesOf(pid)]);
  const before = seen();
  for (let i = 0; i < SYNCS; i++) await sync('16Mi');
  await expect.poll(seen, { timeout: 30_000, interval: 200 }).toEqual(before);
  expect(resizes()).toBe(0);
  for (let i = 0; i < 3; i++) await sync('32Mi');
  expect(resizes()).toBe(1);
  expect(pod.logs.filter(({ level, subcomponent }) => level === 'error' && subcomponent === undefined)).toEqual([]);
}, 240_000);
