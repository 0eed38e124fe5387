import { readdirSync, readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { cmdV1, unwrap } from '@virtwire/shared-proto';
import type { CmdClient } from '@virtwire/shared-proto';
import { parseVmiJson, renderVmiJson } from '@virtwire/vm-model';
import type { Vmi } from '@virtwire/vm-model';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createVmi, hasGuest, provideKernel, requestOf } from './support/guest.ts';
import type { LauncherPod } from './support/sandbox.ts';
import { startLauncherPod } from './support/sandbox.ts';

const UID = '7a1b2c3d-0000-4000-8000-000000000041';
const PATIENT = { timeoutMs: 60_000 };
const POLL = { timeout: 60_000, interval: 300 };
/** New memory is used without anybody's doing, as distributions have it. */
const KERNEL_ARGS = 'console=ttyS0 quiet memhp_default_state=online';
const bare = createVmi({ name: 'vm1', uid: UID, withGuest: true, kernelArgs: KERNEL_ARGS });

/** The VM with one of at most three sockets, and 256 MiB of at most 512 MiB, unless asked for more. */
function vmiWith(sockets: number, guest: string): Vmi {
  const vmi = JSON.parse(renderVmiJson(bare)) as {
    spec: { domain: { cpu?: object; memory?: object } };
    status: { phase?: string; memory?: object };
  };
  vmi.spec.domain.cpu = { ...vmi.spec.domain.cpu, cores: 1, threads: 1, sockets, maxSockets: 3 };
  vmi.spec.domain.memory = { guest, maxGuest: '512Mi' };
  vmi.status.memory = { guestAtBoot: '256Mi', guestCurrent: '256Mi', guestRequested: guest };
  return parseVmiJson(JSON.stringify(vmi));
}

/** Which host CPUs the thread of each vCPU may run on. */
function hostCpusOf(qemu: number): Record<string, string> {
  const tasks = `/proc/${String(qemu)}/task`;
  const read = (tid: string, file: string): string => readFileSync(join(tasks, tid, file), 'utf8');
  const threads = readdirSync(tasks).map((tid) => {
    const allowed = /^Cpus_allowed_list:\s*(\S+)$/m.exec(read(tid, 'status'))?.[1] ?? '';
    return [read(tid, 'comm').replace(/\/.*\n$/, ''), allowed] as const;
  });
  return Object.fromEntries(threads.filter(([name]) => name.startsWith('CPU ')));
}

describe.runIf(hasGuest)('CPUs and memory of a running guest (scripts/guest/build.sh)', { timeout: 240_000 }, () => {
  let pod: LauncherPod;
  let client: CmdClient;
  const started: { pod?: LauncherPod; client?: CmdClient } = {};
  const inGuest = async (script: string): Promise<string> => {
    const ask = { domainName: 'default_vm1', Command: '/bin/sh', Args: ['-c', script], timeoutSeconds: 20 };
    return unwrap(await client.exec(ask, PATIENT)).stdOut.trim();
  };
  const cpus = (): Promise<string> =>
    inGuest('for f in /sys/devices/system/cpu/cpu*/online; do echo 1 >$f; done 2>/dev/null; nproc');
  const memoryMiB = async (): Promise<number> =>
    Math.round(Number(await inGuest("sed -n 's/^MemTotal: *\\([0-9]*\\) kB/\\1/p' /proc/meminfo")) / 1_024);

  beforeAll(async () => {
    pod = await startLauncherPod(['--name', 'vm1', '--namespace', 'default', '--uid', UID]);
    started.pod = pod;
    provideKernel(pod);
    await pod.ear.open();
    await pod.waitUntilReady();
    client = await pod.connect();
    started.client = client;
    unwrap(await client.syncVirtualMachine(requestOf(vmiWith(1, '256Mi')), PATIENT));
    await pod.waitForLog('GuestAgentLifecycle event state 1 with reason 2 received');
  }, 200_000);

  afterAll(async () => {
    started.client?.close();
    await started.pod?.[Symbol.asyncDispose]();
  });

  test('the guest gets memory and gives it back', async () => {
    const atBoot = await memoryMiB();
    unwrap(await client.syncVirtualMachineMemory(requestOf(vmiWith(1, '384Mi')), PATIENT));
    await expect.poll(memoryMiB, POLL).toBe(atBoot + 128);
    unwrap(await client.syncVirtualMachineMemory(requestOf(vmiWith(1, '512Mi')), PATIENT));
    await expect.poll(memoryMiB, POLL).toBe(atBoot + 256);
    unwrap(await client.syncVirtualMachineMemory(requestOf(vmiWith(1, '256Mi')), PATIENT));
    // A guest may keep a block in which something lies that it cannot move.
    await expect.poll(memoryMiB, POLL).toBeLessThan(atBoot + 32);
    await pod.waitForLog('Domain Memory Device size-change event received');
  });

  test.runIf(availableParallelism() > 1)('each dedicated CPU runs on a host CPU of its own', async () => {
    const { spec } = vmiWith(2, '256Mi');
    spec.domain.cpu = { ...spec.domain.cpu, dedicatedCpuPlacement: true };
    const numa_cells = [{ id: 0, cpus: [0, 1].map((id) => ({ id, siblings: [] })) }];
    const options = cmdV1.VirtualMachineOptions.fromPartial({ topology: { numa_cells } });
    const request = { ...requestOf({ ...bare, spec }), options };
    unwrap(await client.syncVirtualMachineCPUs(request, PATIENT));
    await expect.poll(cpus, POLL).toBe('2');
    expect(hostCpusOf(pod.qemuPid() ?? 0)).toEqual({ 'CPU 0': '0', 'CPU 1': '1' });
  });

  test('the guest gets CPUs', async () => {
    unwrap(await client.syncVirtualMachineCPUs(requestOf(vmiWith(3, '256Mi')), PATIENT));
    await expect.poll(cpus, POLL).toBe('3');
  });

  test('more CPUs than the machine has places for are refused', async () => {
    const answer = await client.syncVirtualMachineCPUs(requestOf(vmiWith(4, '256Mi')), PATIENT);
    expect(answer.ok ? '' : answer.error.detail).toMatch(/^failed to update vCPUs: virError\(Code=8, /);
  });

  test('the guest loses a CPU', async () => {
    await client.syncVirtualMachineCPUs(requestOf(vmiWith(2, '256Mi')), PATIENT);
    await expect.poll(cpus, POLL).toBe('2');
  });
});
