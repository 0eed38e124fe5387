import { chown, mkdir, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { unwrap } from '@virtwire/shared-proto';
import type { CmdClient } from '@virtwire/shared-proto';
import { parseVmiJson, renderVmiJson } from '@virtwire/vm-model';
import type { Vmi } from '@virtwire/vm-model';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createVmi, hasGuest, provideKernel, requestOf } from './support/guest.ts';
import type { LauncherPod } from './support/sandbox.ts';
import { startLauncherPod } from './support/sandbox.ts';

const UID = '7a1b2c3d-0000-4000-8000-000000000012';
const PATIENT = { timeoutMs: 60_000 };
const MIB = 1 << 20;
const running = createVmi({ name: 'vm1', uid: UID, withGuest: true, phase: 'Running' });

/** The VMI with a claim of some size plugged in. */
function withDisk(storage: string): Vmi {
  const vmi = JSON.parse(renderVmiJson(running)) as {
    spec: { volumes?: unknown; domain: { devices: { disks?: unknown } } };
    status: { volumeStatus?: unknown };
  };
  const claim = { claimName: 'claim', capacity: { storage }, requests: { storage }, filesystemOverhead: '0' };
  vmi.spec.domain.devices.disks = [{ name: 'aa', serial: 'aa', disk: { bus: 'scsi' } }];
  vmi.spec.volumes = [{ name: 'aa', persistentVolumeClaim: { claimName: 'claim', hotpluggable: true } }];
  vmi.status.volumeStatus = [
    {
      name: 'aa',
      target: '',
      phase: 'Ready',
      hotplugVolume: { attachPodName: 'hp', attachPodUID: 'u1' },
      persistentVolumeClaimInfo: { ...claim, volumeMode: 'Filesystem', accessModes: ['ReadWriteOnce'] },
    },
  ];
  return parseVmiJson(JSON.stringify(vmi));
}

describe.runIf(hasGuest)('disks of a running guest (scripts/guest/build.sh)', { timeout: 240_000 }, () => {
  let pod: LauncherPod;
  let client: CmdClient;
  let image: string;
  const started: { pod?: LauncherPod; client?: CmdClient } = {};
  const sync = async (vmi: Vmi) => unwrap(await client.syncVirtualMachine(requestOf(vmi), PATIENT));
  const sizes = async () => {
    const Args = ['-c', 'cat /sys/block/sd*/size'];
    const answer = await client.exec(
      { domainName: 'default_vm1', Command: '/bin/sh', Args, timeoutSeconds: 10 },
      PATIENT,
    );
    return unwrap(answer).stdOut;
  };
  const untilSizes = (wanted: string) => expect.poll(sizes, { timeout: 60_000, interval: 200 }).toBe(wanted);

  beforeAll(async () => {
    pod = await startLauncherPod(['--name', 'vm1', '--namespace', 'default', '--uid', UID]);
    started.pod = pod;
    provideKernel(pod);
    const dir = join(pod.shareDir, 'hotplug-disks');
    image = join(dir, 'aa.img');
    await mkdir(dir, { recursive: true });
    await pod.ear.open();
    await pod.waitUntilReady();
    client = await pod.connect();
    started.client = client;
    await sync({ ...running, status: { ...running.status, phase: 'Scheduled' } });
    await pod.waitForLog('GuestAgentLifecycle event state 1 with reason 2 received');
  }, 200_000);

  afterAll(async () => {
    started.client?.close();
    await started.pod?.[Symbol.asyncDispose]();
  });

  test('a disk is plugged in when its image is there, once', async () => {
    await sync(withDisk('16Mi'));
    expect(await sizes()).toBe('');
    await writeFile(image, '');
    await truncate(image, 16 * MIB);
    await chown(image, 107, 107);
    await sync(withDisk('16Mi'));
    await untilSizes(`${(16 * MIB) / 512}\n`);
    await sync(withDisk('16Mi'));
    expect(pod.logs.filter(({ msg }) => String(msg).startsWith('Attaching disk aa, target sda')).length).toBe(1);
  });

  test('the guest sees that its claim has become larger', async () => {
    await sync(withDisk('32Mi'));
    await untilSizes(`${(32 * MIB) / 512}\n`);
  });

  test('a disk is unplugged', async () => {
    await sync(running);
    await untilSizes('');
    await sync(running);
    expect(pod.logs.filter(({ msg }) => String(msg).startsWith('Detaching disk aa, target sda')).length).toBe(1);
  });
});
