import { execFileSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { unwrap } from '@virtwire/shared-proto';
import { expect, test } from 'vitest';
import { createVmi, requestOf } from './support/guest.ts';
import type { LauncherPod } from './support/sandbox.ts';
import { eventually, startLauncherPod } from './support/sandbox.ts';

const UID = '7a1b2c3d-0000-4000-8000-000000000002';
const FLAGS = ['--name', 'vm1', '--namespace', 'default', '--uid', UID];
const LIMIT = { timeout: 240_000 };

/** A pod whose VM runs, with nothing in it that could answer. */
async function startRunning(
  flags: readonly string[] = [],
  options: { gracePeriodSeconds?: number } = {},
): Promise<LauncherPod> {
  const pod = await startLauncherPod([...FLAGS, ...flags]);
  await pod.ear.open();
  await pod.waitUntilReady();
  using client = await pod.connect();
  unwrap(await client.syncVirtualMachine(requestOf(createVmi({ name: 'vm1', uid: UID, ...options }))));
  await pod.ear.hear('Running', (e) => e.domain.Status.Status === 'Running');
  return pod;
}

test('FM-9.1 as process 1 the launcher collects what QEMU leaves behind', LIMIT, async () => {
  await using pod = await startRunning();
  const qemu = await eventually('QEMU', () => pod.qemuPid());
  process.kill(qemu, 'SIGKILL');
  await pod.ear.hear('the crash', (e) => e.domain.Status.Reason === 'Crashed');
  await eventually('QEMU to be collected', () => !pod.processStates().has(qemu));
  await eventually('no zombie', () => [...pod.processStates().values()].every((state) => state !== 'Z'));
  await deleteDomain(pod);
  expect(await pod.exited).toBe(0);
});

async function deleteDomain(pod: LauncherPod): Promise<void> {
  using client = await pod.connect();
  unwrap(await client.deleteVirtualMachine(requestOf(createVmi({ name: 'vm1', uid: UID }))));
}

test(
  'kill -9 of QEMU: the handler hears of it at once, and the launcher ends when the domain is deleted',
  LIMIT,
  async () => {
    await using pod = await startRunning();
    const qemu = await eventually('QEMU', () => pod.qemuPid());
    process.kill(qemu, 'SIGKILL');
    const { domain } = await pod.ear.hear(
      'the end',
      (e) => e.domain.Status.Status === 'Shutoff' && e.type === 'MODIFIED' && e.domain.Status.Reason !== 'Unknown',
    );
    expect(domain.Status.Reason).toBe('Crashed');
    expect(domain.ObjectMeta.deletionTimestamp).toBeUndefined();
    await deleteDomain(pod);
    await pod.ear.hear('the final event', (e) => e.domain.ObjectMeta.deletionTimestamp !== undefined);
    expect(await pod.exited).toBe(0);
  },
);

test('FM-9.4 a launcher that is never given a VM ends with what was missing', LIMIT, async () => {
  await using pod = await startLauncherPod([...FLAGS, '--qemu-timeout', '2s']);
  expect(await pod.exited).toBe(2);
  expect(pod.output()).toMatch(/panic: timed out waiting for domain to be defined \(waited 2s; no SyncVirtualMachine/);
});

test('SIGTERM before there is a domain is a clean end', LIMIT, async () => {
  await using pod = await startLauncherPod(FLAGS);
  await pod.waitUntilReady();
  process.kill(pod.launcherPid(), 'SIGTERM');
  expect(await pod.exited).toBe(0);
});

test('FM-8.3 SignalTargetPodCleanup ends a waiting launcher with a code other than 0', LIMIT, async () => {
  await using pod = await startLauncherPod(FLAGS);
  await pod.waitUntilReady();
  using client = await pod.connect();
  const vmi = createVmi({ name: 'vm1', uid: UID });
  const migrationState = { targetPod: 'another-pod' };
  unwrap(await client.signalTargetPodCleanup(requestOf({ ...vmi, status: { ...vmi.status, migrationState } })));
  await sleep(500);
  expect(unwrap(await client.ping()).success).toBe(true);
  migrationState.targetPod = 'virt-launcher-test';
  unwrap(await client.signalTargetPodCleanup(requestOf({ ...vmi, status: { ...vmi.status, migrationState } })));
  expect(await pod.exited).toBe(2);
  expect(pod.output()).toContain('received early exit signal');
});

test('FM-9.5 SIGTERM marks the domain; without a handler the VM is ended within its grace period', LIMIT, async () => {
  await using pod = await startRunning(['--grace-period-seconds', '13'], { gracePeriodSeconds: 13 });
  process.kill(pod.launcherPid(), 'SIGTERM');
  const { domain } = await pod.ear.hear(
    'the mark',
    (e) => e.domain.Spec.Metadata.KubeVirt.GracePeriod?.MarkedForGracefulShutdown === true,
  );
  expect(domain.Status.Status).toBe('Running');
  await pod.waitForLog('virt-handler did not react to the graceful shutdown, powering the guest down');
  await pod.waitForLog('Grace Period expired, shutting down.');
  await pod.ear.hear('Destroyed', (e) => e.domain.Status.Reason === 'Destroyed');
  await deleteDomain(pod);
  expect(await pod.exited).toBe(0);
});

test('a libvirt that hangs keeps neither the VM nor the pod beyond the grace period', LIMIT, async () => {
  await using pod = await startRunning(['--grace-period-seconds', '2'], { gracePeriodSeconds: 2 });
  process.kill(await eventually('the daemon', () => pod.daemonPid()), 'SIGSTOP');
  process.kill(pod.launcherPid(), 'SIGTERM');
  await pod.waitForLog('Falling back to SIGTERM');
  await eventually('the end of QEMU', () => pod.qemuPid() === undefined);
  await pod.waitForLog('Waiting on final notifications to be sent to virt-handler.');
  expect(await pod.exited).toBe(0);
});

test('while the pipe is down the newest state is kept, and sent when it is back', LIMIT, async () => {
  await using pod = await startRunning();
  await pod.ear.close();
  const before = pod.ear.domains.length;
  using client = await pod.connect();
  unwrap(await client.pauseVirtualMachine(requestOf(createVmi({ name: 'vm1', uid: UID }))));
  await sleep(1_500);
  expect(pod.ear.domains.length).toBe(before);
  await pod.ear.open();
  // An event that was under way when the pipe went is tried again first.
  const { domain } = await eventually('the newest state', () =>
    pod.ear.domains.slice(before).find((e) => e.domain.Status.Status === 'Paused'),
  );
  expect(domain.Status.Reason).toBe('User');
});

test('a flood of log lines whose reader is slow does not end the launcher', LIMIT, async () => {
  await using pod = await startLauncherPod([...FLAGS, '--libvirt-log-filters', '1:*']);
  await pod.ear.open();
  await pod.waitUntilReady();
  using client = await pod.connect();
  pod.pauseOutput(1_000);
  unwrap(await client.syncVirtualMachine(requestOf(createVmi({ name: 'vm1', uid: UID }))));
  await pod.ear.hear('Running', (e) => e.domain.Status.Status === 'Running');
  // The line of the first sync may be among those that are left out; a later one comes through.
  const wasTold = (): boolean => pod.output().includes('Synced vmi');
  for (let tries = 0; tries < 100 && !wasTold(); tries++) {
    await sleep(200);
    unwrap(await client.syncVirtualMachine(requestOf(createVmi({ name: 'vm1', uid: UID }))));
  }
  expect(wasTold()).toBe(true);
});

test('FM-2.1 each restart of the notify server is survived, and the next event arrives', LIMIT, async () => {
  await using pod = await startRunning();
  using client = await pod.connect();
  const vmi = requestOf(createVmi({ name: 'vm1', uid: UID }));
  for (const [call, status] of [
    ['pauseVirtualMachine', 'Paused'],
    ['unpauseVirtualMachine', 'Running'],
    ['pauseVirtualMachine', 'Paused'],
  ] as const) {
    await pod.ear.close();
    await pod.ear.open();
    const before = pod.ear.domains.length;
    unwrap(await client[call](vmi));
    await eventually(status, () => pod.ear.domains.slice(before).some((e) => e.domain.Status.Status === status));
  }
});

test('FM-2.6 a libvirt daemon that dies comes back, and the domain is told again', LIMIT, async () => {
  await using pod = await startRunning();
  const before = pod.ear.domains.length;
  const { daemonPid } = await eventually('the daemon', () => {
    const pid = pod.daemonPid();
    return pid === undefined ? undefined : { daemonPid: pid };
  });
  process.kill(daemonPid, 'SIGKILL');
  await pod.waitForLog(/^(libvirtd|virtqemud) exited, restarting$/);
  await pod.waitForLog(/^Libvirt reconnected, domain default_vm1\./);
  const { domain } = await eventually('the domain', () => pod.ear.domains.slice(before).at(-1));
  expect(domain.Status.Status).toBe('Running');
  using client = await pod.connect();
  unwrap(await client.killVirtualMachine(requestOf(createVmi({ name: 'vm1', uid: UID }))));
  await pod.ear.hear('Destroyed', (e) => e.domain.Status.Reason === 'Destroyed');
});

test(
  'a memory dump whose storage is full has failed with the reason, and leaves nothing of it there',
  LIMIT,
  async () => {
    await using pod = await startRunning();
    const small = '/run/kubevirt/small';
    const mount = ['mount', '-t', 'tmpfs', '-o', 'size=2m,uid=107', 'tmpfs', small];
    for (const command of [['mkdir', small], mount]) {
      execFileSync('/usr/bin/nsenter', ['-t', String(pod.launcherPid()), '-m', ...command]);
    }
    using client = await pod.connect();
    const { vmi } = requestOf(createVmi({ name: 'vm1', uid: UID }));
    unwrap(await client.virtualMachineMemoryDump({ vmi, dumpPath: `${small}/a.memory.dump` }));
    const { domain } = await pod.ear.hear(
      'the failure',
      (e) => e.domain.Spec.Metadata.KubeVirt.MemoryDump?.Completed === true,
    );
    expect(domain.Spec.Metadata.KubeVirt.MemoryDump).toMatchObject({ FileName: 'a.memory.dump', Failed: true });
    expect(domain.Spec.Metadata.KubeVirt.MemoryDump?.FailureReason).toMatch(/^Domain memory dump failed: virError/);
    expect(readdirSync(join('/proc', String(pod.launcherPid()), 'root', small))).toEqual([]);
    await eventually('the guest', () => pod.ear.domains.at(-1)?.domain.Status.Status === 'Running');
  },
);
