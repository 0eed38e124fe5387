import { chownSync, mkdirSync, readdirSync, readlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { unwrap } from '@virtwire/shared-proto';
import type { CmdClient } from '@virtwire/shared-proto';
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

/** A VM with a disk, running, and what syncs it as it is. */
async function startRunning(pod: LauncherPod, client: CmdClient): Promise<(storage?: string) => Promise<void>> {
  provideDisk(pod);
  unwrap(await client.syncVirtualMachine(requestOf(createVmiWithDisk('Scheduled', '16Mi')), { timeoutMs: 60_000 }));
  await pod.ear.hear('Running', (e) => e.domain.Status.Status === 'Running');
  const sync = async (storage = '16Mi'): Promise<void> => {
    unwrap(await client.syncVirtualMachine(requestOf(createVmiWithDisk('Running', storage)), { timeoutMs: 20_000 }));
  };
  await sync();
  return sync;
}

async function startPod(): Promise<LauncherPod> {
  const pod = await startLauncherPod(['--name', 'vm1', '--namespace', 'default', '--uid', UID]);
  await pod.ear.open();
  await pod.waitUntilReady();
  return pod;
}

test(`FM-9.8 ${SYNCS} syncs of a running VM leave no open file, in the launcher or in libvirt`, async () => {
  await using pod = await startPod();
  using client = await pod.connect();
  const sync = await startRunning(pod, client);
  const resizes = (): number => pod.logs.filter(({ msg }) => String(msg).startsWith('resizing disk data')).length;
  const seen = (): readonly string[][] => [pod.launcherPid(), pod.daemonPid() ?? 0].map((pid) => [...openFilesOf(pid)]);
  const before = seen();
  for (let i = 0; i < SYNCS; i++) await sync();
  await expect.poll(seen, { timeout: 30_000, interval: 200 }).toEqual(before);
  expect(resizes()).toBe(0);
  for (let i = 0; i < 3; i++) await sync('32Mi');
  expect(resizes()).toBe(1);
  expect(pod.logs.filter(({ level, subcomponent }) => level === 'error' && subcomponent === undefined)).toEqual([]);
}, 240_000);

test('FM-4.7 a sync of an unchanged VM waits for no answer of QEMU', async () => {
  await using pod = await startPod();
  using client = await pod.connect();
  const sync = await startRunning(pod, client);
  const qemu = pod.qemuPid() ?? 0;
  process.kill(qemu, 'SIGSTOP');
  for (let i = 0; i < 10; i++) await sync();
  const growing = await client.syncVirtualMachine(requestOf(createVmiWithDisk('Running', '32Mi')), {
    timeoutMs: 1_000,
  });
  expect(growing.ok).toBe(false);
  process.kill(qemu, 'SIGCONT');
  await sync('32Mi');
  await pod.waitForLog(/^resizing disk data with flags 1/);
}, 240_000);
