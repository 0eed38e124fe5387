import { chownSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { runTool } from '@virtwire/host';
import { unwrap } from '@virtwire/shared-proto';
import type { CmdClient } from '@virtwire/shared-proto';
import { hashedPodLinkName, parseVmiJson, renderVmiJson } from '@virtwire/vm-model';
import type { Vmi } from '@virtwire/vm-model';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createVmi, hasGuest, provideKernel, requestOf } from './support/guest.ts';
import type { LauncherPod } from './support/sandbox.ts';
import { startLauncherPod } from './support/sandbox.ts';

const UID = '7a1b2c3d-0000-4000-8000-000000000042';
const PATIENT = { timeoutMs: 60_000 };
const POLL = { timeout: 60_000, interval: 300 };
const MAC = '02:00:00:aa:bb:42';
const MTU = 1400;
const POD_LINK = hashedPodLinkName('blue');
const TAP = POD_LINK.replace('pod', 'tap');
const OPTIONS = { interfaceDomainAttachment: new Map([['blue', 'tap']]) };
const bare = createVmi({ name: 'vm1', uid: UID, withGuest: true });

/** What a running VM has beside its drive. */
interface Devices {
  readonly medium?: string;
  readonly disk?: string;
  readonly nic?: { readonly state?: string };
  readonly phase?: string;
  readonly hasAgent?: boolean;
}

interface VmiJson {
  spec: { networks?: object[]; volumes?: object[]; domain: { devices: { disks?: object[]; interfaces?: object[] } } };
  status: { phase?: string; volumeStatus?: object[]; interfaces?: object[]; conditions?: object[] };
}

function vmiWith({ medium, disk, nic, phase = 'Running', hasAgent = false }: Devices): Vmi {
  const vmi = JSON.parse(renderVmiJson(bare)) as VmiJson;
  vmi.status.phase = phase;
  const { devices } = vmi.spec.domain;
  devices.disks = [{ name: medium ?? 'drive', cdrom: { bus: 'scsi' } }];
  if (disk !== undefined) devices.disks.push({ name: disk, disk: { bus: 'virtio' } });
  const volumes = [medium, disk].filter((name) => name !== undefined);
  vmi.spec.volumes = volumes.map((name) => ({
    name,
    persistentVolumeClaim: { claimName: name, hotpluggable: true },
  }));
  vmi.status.volumeStatus = volumes.map((name) => ({
    name,
    target: '',
    phase: 'Ready',
    hotplugVolume: { attachPodName: 'hp', attachPodUID: 'u1' },
    persistentVolumeClaimInfo: {
      claimName: name,
      capacity: { storage: '1Mi' },
      requests: { storage: '1Mi' },
      volumeMode: 'Filesystem',
      accessModes: ['ReadWriteOnce'],
    },
  }));
  if (nic !== undefined) {
    devices.interfaces = [{ name: 'blue', bridge: {}, macAddress: MAC, ...nic }];
    vmi.spec.networks = [{ name: 'blue', multus: { networkName: 'blue-net' } }];
    vmi.status.interfaces = [{ name: 'blue', podInterfaceName: POD_LINK, infoSource: 'multus-status' }];
  }
  if (hasAgent) vmi.status.conditions = [{ type: 'AgentConnected', status: 'True' }];
  return parseVmiJson(JSON.stringify(vmi));
}

/** What a handler's first network phase leaves for a bridge interface without an address of its own. */
async function providePodNetwork(pod: LauncherPod): Promise<void> {
  const ip = (...args: string[]) =>
    runTool('nsenter', ['-t', String(pod.launcherPid()), '-n', 'ip', ...args], { timeoutMs: 10_000 });
  await ip('link', 'add', POD_LINK, 'mtu', String(MTU), 'type', 'bridge');
  await ip('tuntap', 'add', TAP, 'mode', 'tap', 'user', '107', 'group', '107');
  await ip('link', 'set', TAP, 'mtu', String(MTU), 'up');
  const file = join(pod.root, 'kubevirt-private', `vif-cache-${POD_LINK}.json`);
  writeFileSync(file, JSON.stringify({ Name: POD_LINK, IPAMDisabled: true }));
}

function provideImage(pod: LauncherPod, name: string): void {
  const dir = join(pod.shareDir, 'hotplug-disks');
  mkdirSync(dir, { recursive: true });
  const image = Buffer.alloc(1 << 20);
  image.write(`medium ${name}`);
  writeFileSync(join(dir, `${name}.img`), image);
  chownSync(join(dir, `${name}.img`), 107, 107);
}

describe.runIf(hasGuest)('devices of a running guest (scripts/guest/build.sh)', { timeout: 240_000 }, () => {
  let pod: LauncherPod;
  let client: CmdClient;
  const started: { pod?: LauncherPod; client?: CmdClient } = {};
  const sync = async (devices: Devices) =>
    unwrap(await client.syncVirtualMachine({ ...requestOf(vmiWith(devices)), options: OPTIONS }, PATIENT));
  const inGuest = async (script: string): Promise<string> => {
    const ask = { domainName: 'default_vm1', Command: '/bin/sh', Args: ['-c', script], timeoutSeconds: 20 };
    const answer = await client.exec(ask, PATIENT);
    return answer.ok ? answer.value.stdOut.trim() : `no answer: ${answer.error.message}`;
  };
  const nic = (file: string) => `cat $(dirname $(grep -l ${MAC} /sys/class/net/*/address))/${file}`;

  beforeAll(async () => {
    pod = await startLauncherPod(['--name', 'vm1', '--namespace', 'default', '--uid', UID]);
    started.pod = pod;
    provideKernel(pod);
    for (const image of ['one', 'two', 'data']) provideImage(pod, image);
    await pod.ear.open();
    await pod.waitUntilReady();
    await providePodNetwork(pod);
    client = await pod.connect();
    started.client = client;
    await sync({ phase: 'Scheduled' });
    await pod.waitForLog('GuestAgentLifecycle event state 1 with reason 2 received');
  }, 200_000);

  afterAll(async () => {
    started.client?.close();
    await started.pod?.[Symbol.asyncDispose]();
  });

  test('a medium is put into the drive, changed, and taken out', async () => {
    const label = () => inGuest('head -c 10 /dev/sr0 2>&1');
    expect(await label()).toMatch(/No medium/);
    await sync({ medium: 'one' });
    await expect.poll(label, POLL).toBe('medium one');
    await sync({ medium: 'two' });
    await expect.poll(label, POLL).toBe('medium two');
    await sync({});
    await expect.poll(label, POLL).toMatch(/No medium/);
  });

  test('a virtio disk is plugged in, read and written, and unplugged', async () => {
    const disks = () => inGuest('ls /sys/block | grep vd');
    expect(await disks()).toBe('');
    await sync({ disk: 'data' });
    await expect.poll(disks, POLL).toBe('vda');
    expect(await inGuest('head -c 11 /dev/vda')).toBe('medium data');
    await inGuest('echo written | dd of=/dev/vda conv=notrunc,fsync 2>/dev/null');
    await sync({});
    await expect.poll(disks, POLL).toBe('');
    expect(readFileSync(join(pod.shareDir, 'hotplug-disks/data.img')).subarray(0, 7).toString()).toBe('written');
  });

  test('a network card is plugged in with its MAC and MTU', async () => {
    expect(await inGuest(nic('address'))).toBe('');
    await sync({ nic: {} });
    await expect.poll(() => inGuest(nic('address')), POLL).toBe(MAC);
    expect(await inGuest(nic('mtu'))).toBe(String(MTU));
  });

  test('its cable is pulled and put back', async () => {
    await inGuest(`ip link set $(basename $(dirname $(grep -l ${MAC} /sys/class/net/*/address))) up`);
    await expect.poll(() => inGuest(nic('carrier')), POLL).toBe('1');
    await sync({ nic: { state: 'down' } });
    await expect.poll(() => inGuest(nic('carrier')), POLL).toBe('0');
    await sync({ nic: { state: 'up' } });
    await expect.poll(() => inGuest(nic('carrier')), POLL).toBe('1');
  });

  test('it is unplugged', async () => {
    await sync({ nic: { state: 'absent' } });
    await expect.poll(() => inGuest(nic('address')), POLL).toBe('');
    await pod.waitForLog('Domain Device Removed event received');
  });

  const bootId = () => inGuest('cat /proc/sys/kernel/random/boot_id');
  const untilBootedAnew = (before: string) =>
    expect
      .poll(bootId, { timeout: 200_000, interval: 500 })
      .toSatisfy((id: string) => /^[0-9a-f-]{36}$/.test(id) && id !== before);

  test.each([
    ['its agent', true],
    ['its power button', false],
  ])('the guest reboots on the request to %s', async (_way, hasAgent) => {
    const before = await bootId();
    unwrap(await client.softRebootVirtualMachine(requestOf(vmiWith({ hasAgent })), PATIENT));
    await untilBootedAnew(before);
    expect(JSON.parse(unwrap(await client.getDomain()).domain)).toMatchObject({ Status: { Status: 'Running' } });
  });
});
