import { randomUUID } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { mkdir, chown, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { unwrap } from '@virtwire/shared-proto';
import type { CmdClient } from '@virtwire/shared-proto';
import { domainStats as domainStatsJson } from '@virtwire/vm-model/payloads';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parseCore } from './support/core-file.ts';
import { createVmi, hasGuest, provideKernel, requestOf } from './support/guest.ts';
import { decodePicture } from './support/picture.ts';
import type { LauncherPod } from './support/sandbox.ts';
import { eventually, startLauncherPod } from './support/sandbox.ts';

const UID = '7a1b2c3d-0000-4000-8000-000000000011';
const FLAGS = ['--name', 'vm1', '--namespace', 'default', '--uid', UID, '--vm-stats-collector'];
const bare = createVmi({ name: 'vm1', uid: UID, withGuest: true });
const { domain } = bare.spec;
const disks = [{ name: 'data', disk: { bus: 'virtio' as const } }];
const vmi = {
  ...bare,
  spec: {
    ...bare.spec,
    domain: { ...domain, devices: { ...domain.devices, disks } },
    volumes: [{ name: 'data', emptyDisk: { capacity: '64Mi' } }],
  },
};
const { vmi: name } = requestOf(vmi);
const PATIENT = { timeoutMs: 60_000 };
const POLL = { timeout: 60_000, interval: 300 };

describe.runIf(hasGuest)('operations on a guest with an agent (scripts/guest/build.sh)', { timeout: 240_000 }, () => {
  let pod: LauncherPod;
  let client: CmdClient;
  const started: { pod?: LauncherPod; client?: CmdClient } = {};
  const exec = async (Command: string, ...Args: string[]) =>
    unwrap(await client.exec({ domainName: 'default_vm1', Command, Args, timeoutSeconds: 20 }, PATIENT));

  beforeAll(async () => {
    const everySecond = ['--qemu-fsfreeze-status-interval', '--qemu-agent-file-interval', '--qemu-agent-user-interval'];
    pod = await startLauncherPod([...FLAGS, ...everySecond.flatMap((flag) => [flag, '1s'])]);
    started.pod = pod;
    provideKernel(pod);
    await pod.ear.open();
    await pod.waitUntilReady();
    client = await pod.connect();
    started.client = client;
    unwrap(await client.syncVirtualMachine(requestOf(vmi)));
    await pod.waitForLog('GuestAgentLifecycle event state 1 with reason 2 received');
  }, 200_000);

  afterAll(async () => {
    started.client?.close();
    await started.pod?.[Symbol.asyncDispose]();
  });

  test('a command runs in the guest: output, exit code, arguments with quotes', async () => {
    expect(await exec('/bin/sh', '-c', 'echo "a b"')).toMatchObject({ exitCode: 0, stdOut: 'a b\n' });
    expect((await exec('/bin/sh', '-c', 'exit 3')).exitCode).toBe(3);
    const slow = { domainName: 'default_vm1', Command: '/bin/sh', Args: ['-c', 'sleep 30'], timeoutSeconds: 1 };
    const late = await client.exec(slow, PATIENT);
    expect(late.ok ? '' : late.error.detail).toMatch(/^Timed out waiting for guest pid \[\d+\] for command/);
    const never = await client.exec({ ...slow, timeoutSeconds: 0 }, PATIENT);
    expect(never.ok).toBe(false);
  });

  test('file systems are frozen, as the agent says, and thawed', async () => {
    const made = await exec('/bin/sh', '-c', 'mke2fs /dev/vda && mkdir -p /mnt && mount -t ext4 /dev/vda /mnt');
    expect(made.exitCode).toBe(0);
    unwrap(await client.freezeVirtualMachine({ vmi: name, unfreezeTimeoutSeconds: 0 }, PATIENT));
    await pod.ear.hear('frozen', (e) => e.domain.Status.FSFreezeStatus.Status === 'frozen');
    unwrap(await client.unfreezeVirtualMachine(requestOf(vmi), PATIENT));
    const before = pod.ear.domains.length;
    unwrap(await client.freezeVirtualMachine({ vmi: name, unfreezeTimeoutSeconds: 1 }, PATIENT));
    await pod.waitForLog('Unfreeze was not called for vmi vm1 for more then 1s, initiating unfreeze');
    await pod.ear.hear(
      'thawed again',
      (e) => pod.ear.domains.indexOf(e) >= before && e.domain.Status.FSFreezeStatus.Status === 'thawed',
    );
  });

  test('a screenshot is a picture', async () => {
    const { mime, data } = unwrap(await client.getScreenshot(requestOf(vmi), PATIENT));
    expect(mime).toMatch(/^image\//);
    const { width, height, rgb } = decodePicture(data);
    expect(width * height).toBeGreaterThan(100 * 100);
    // What the firmware has written on the screen.
    expect(new Set(rgb).size).toBeGreaterThan(1);
  });

  test('users who are logged in, and mounted file systems', async () => {
    // A record of utmp, as login writes it: type, process, line, identity, user, host, and seconds since 1970 at 340.
    const record = Buffer.alloc(384);
    record.writeInt16LE(7);
    record.writeInt32LE(1, 4);
    record.write('tty1', 8);
    record.write('alice', 44);
    record.writeInt32LE(1_700_000_000, 340);
    const write = `echo ${record.toString('base64')} | base64 -d >/var/run/utmp; mount | grep vda`;
    expect((await exec('/bin/sh', '-c', write)).stdOut).toContain('/mnt');
    const users = async (): Promise<unknown> => JSON.parse(unwrap(await client.getUsers()).guestUserListResponse);
    await expect.poll(users, POLL).toEqual([{ userName: 'alice', loginTime: 1_700_000_000 }]);
    const mounted = async (): Promise<unknown> =>
      JSON.parse(unwrap(await client.getFilesystems()).guestFilesystemsResponse);
    const disk = { diskName: 'vda', mountPoint: '/mnt', fileSystemType: 'ext4' };
    await expect.poll(mounted, POLL).toEqual([expect.objectContaining(disk)]);
  });

  test('the memory is dumped to a file that is a core, and older dumps go', async () => {
    const dir = join(pod.shareDir, 'dumps');
    await mkdir(dir);
    await chown(dir, 107, 107);
    await writeFile(join(dir, 'old.memory.dump'), '');
    const marker = randomUUID();
    expect((await exec('/bin/sh', '-c', `echo ${marker} >/tmp/marker`)).exitCode).toBe(0);
    unwrap(
      await client.virtualMachineMemoryDump(
        { vmi: name, dumpPath: '/var/run/kubevirt/dumps/new.memory.dump' },
        PATIENT,
      ),
    );
    const { domain } = await pod.ear.hear(
      'the dump',
      (e) => e.domain.Spec.Metadata.KubeVirt.MemoryDump?.Completed === true,
    );
    const { FileName, FailureReason = '' } = domain.Spec.Metadata.KubeVirt.MemoryDump ?? {};
    expect({ FileName, FailureReason }).toEqual({ FileName: 'new.memory.dump', FailureReason: '' });
    expect(readdirSync(dir)).toEqual(['new.memory.dump']);
    const core = parseCore(readFileSync(join(dir, 'new.memory.dump')));
    expect(core.memoryBytes).toBeGreaterThanOrEqual(192 << 20);
    expect(core.holds(marker)).toBe(true);
  });

  test('the dirty rate is measured, also within all statistics', async () => {
    const fill = 'while :; do head -c 33554432 /dev/zero >/tmp/fill; done';
    const { stdOut: filler } = await exec('/bin/sh', '-c', `(${fill}) >/dev/null 2>&1 & echo $!`);
    const rate = async (): Promise<bigint> =>
      unwrap(await client.getDomainDirtyRateStats(undefined, PATIENT)).dirtyRateMbs;
    await expect.poll(rate, POLL).toBeGreaterThan(0n);
    await exec('/bin/sh', '-c', `kill ${filler.trim()}; rm /tmp/fill`);
    const stats = await client.getVMStats({ domainStats: {}, dirtyRate: {}, guestGetOsInfo: {} }, PATIENT);
    const { response, domainStats, guestGetOsInfo } = unwrap(stats);
    expect(response?.success).toBe(true);
    const text = domainStats?.domainStats ?? '';
    expect(domainStatsJson.render(domainStatsJson.parse(text))).toBe(text);
    const { Name, Cpu, Memory, Vcpu, Block, CPUMap } = domainStatsJson.parse(text);
    expect({ Name, CpuTime: Cpu?.TimeSet, Rss: Memory?.RSSSet }).toEqual({
      ...{ Name: 'default_vm1', CpuTime: true, Rss: true },
    });
    // One runs, three more may be plugged in.
    expect(Vcpu?.map(({ State }) => Number(State) > 0)).toEqual([true, false, false, false]);
    expect(CPUMap?.length).toBe(1);
    const { Alias, RdReqsSet, WrBytes, Capacity } = Block?.find((block) => block.Name === 'vda') ?? {};
    expect({ Alias, RdReqsSet, Capacity }).toEqual({ Alias: 'data', RdReqsSet: true, Capacity: 64 << 20 });
    expect(Number(WrBytes)).toBeGreaterThan(0);
    expect(JSON.parse(guestGetOsInfo?.message ?? '')).toMatchObject({ return: { id: 'virtwire' } });
  });

  test('without SEV the answers say so', async () => {
    const measurement = await client.getLaunchMeasurement(requestOf(vmi), PATIENT);
    expect(measurement.ok ? '' : measurement.error.detail).not.toBe('');
    const info = await client.getSEVInfo(undefined, PATIENT);
    expect(info.ok ? '' : info.error.detail).toMatch(/SEV|support/);
    const inject = await client.injectLaunchSecret({ vmi: name, options: Buffer.from('{"header":"x"}') }, PATIENT);
    expect(inject.ok ? '' : inject.error.detail).toBe('Secret is required');
  });

  test('a frozen guest is thawed although libvirt dies meanwhile', async () => {
    unwrap(await client.freezeVirtualMachine({ vmi: name, unfreezeTimeoutSeconds: 1 }, PATIENT));
    const daemon = await eventually('the daemon', () => pod.daemonPid());
    process.kill(daemon, 'SIGKILL');
    await pod.waitForLog(/^(libvirtd|virtqemud) exited, restarting$/);
    const write = { domainName: 'default_vm1', Command: '/bin/sh', Args: ['-c', 'date >/mnt/date && sync'] };
    // A frozen guest runs no commands.
    await expect.poll(async () => (await client.exec({ ...write, timeoutSeconds: 20 }, PATIENT)).ok, POLL).toBe(true);
  });

  test('the guest boots again after a reset', async () => {
    const bootId = (await exec('/bin/cat', '/proc/sys/kernel/random/boot_id')).stdOut;
    unwrap(await client.resetVirtualMachine(requestOf(vmi), PATIENT));
    await expect
      .poll(
        async () => {
          const ask = { domainName: 'default_vm1', Command: '/bin/cat', Args: ['/proc/sys/kernel/random/boot_id'] };
          const answer = await client.exec({ ...ask, timeoutSeconds: 5 }, PATIENT);
          return answer.ok ? answer.value.stdOut : bootId;
        },
        { timeout: 120_000, interval: 500 },
      )
      .not.toBe(bootId);
  });
});
