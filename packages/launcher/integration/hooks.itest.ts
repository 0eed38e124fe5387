import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { unwrap } from '@virtwire/shared-proto';
import type { CmdClient } from '@virtwire/shared-proto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createVmi, hasGuest, provideKernel, requestOf } from './support/guest.ts';
import type { LauncherPod } from './support/sandbox.ts';
import { eventually, startLauncherPod } from './support/sandbox.ts';

const UID = '7a1b2c3d-0000-4000-8000-000000000022';
const FLAGS = ['--name', 'vm1', '--namespace', 'default', '--uid', UID, '--hook-sidecars'];
const PROGRAM = fileURLToPath(new URL('./support/sidecar-process.ts', import.meta.url));
const PATIENT = { timeoutMs: 60_000 };
const bare = createVmi({ name: 'vm1', uid: UID, withGuest: true });
const { domain } = bare.spec;
const disks = [{ name: 'seed', disk: { bus: 'virtio' as const } }];
const vmi = {
  ...bare,
  spec: {
    ...bare.spec,
    domain: { ...domain, devices: { ...domain.devices, disks } },
    volumes: [{ name: 'seed', cloudInitNoCloud: { userData: '#cloud-config\n' } }],
  },
};

describe.runIf(hasGuest)('sidecars as processes of their own (scripts/guest/build.sh)', { timeout: 240_000 }, () => {
  let pod: LauncherPod;
  let client: CmdClient;
  const children: ChildProcess[] = [];
  const started: { pod?: LauncherPod; client?: CmdClient } = {};

  function startSidecar(socket: string, version: string, word: string): void {
    const args = [
      '-C',
      '@virtwire/source',
      PROGRAM,
      join(pod.root, socket),
      version,
      word,
      join(pod.root, `${word}-told`),
    ];
    children.push(spawn(process.execPath, args, { stdio: ['ignore', 'ignore', 'inherit'] }));
  }

  async function inGuest(script: string): Promise<string> {
    const command = { domainName: 'default_vm1', Command: '/bin/sh', Args: ['-c', script], timeoutSeconds: 20 };
    return unwrap(await client.exec(command, PATIENT)).stdOut;
  }

  beforeAll(async () => {
    pod = await startLauncherPod([...FLAGS, '3']);
    started.pod = pod;
    provideKernel(pod);
    startSidecar('kubevirt-hooks/hook-sidecar-0/a.sock', 'v1alpha1', 'first');
    startSidecar('kubevirt-hooks/hook-sidecar-1/a.sock', 'v1alpha2', 'second');
    startSidecar('kubevirt-hooks/hook-sidecar-2/a.sock', 'v1alpha3', 'third');
    startSidecar('kubevirt-plugin/example/a.sock', 'none', 'plugged');
    await pod.ear.open();
    await pod.waitUntilReady();
    await pod.waitForLog('Collected all requested hook sidecar sockets');
    client = await pod.connect();
    started.client = client;
    const hook = { sidecar: { socketPath: '/var/run/kubevirt-plugin/example/a.sock' } };
    const pluginsJson = Buffer.from(JSON.stringify([{ metadata: { name: 'example' }, spec: { domainHooks: [hook] } }]));
    unwrap(await client.syncVirtualMachine({ ...requestOf(vmi), options: { pluginsJson } }, PATIENT));
    await pod.waitForLog('GuestAgentLifecycle event state 1 with reason 2 received');
  }, 200_000);

  afterAll(async () => {
    started.client?.close();
    await started.pod?.[Symbol.asyncDispose]();
    for (const child of children) child.kill('SIGKILL');
  });

  test('what they write into the domain reaches the guest, sidecars first, then plugins', async () => {
    const words = (await inGuest('cat /proc/cmdline')).trim().split(' ');
    expect(words.slice(-4)).toEqual(['first', 'second', 'third', 'plugged']);
  });

  test("the first that can changes cloud-init's data", async () => {
    const seed = await inGuest('mkdir -p /mnt; mount -o ro /dev/vda /mnt 2>&1; cat /mnt/user-data; umount /mnt');
    expect(seed).toBe('#cloud-config\nsecond\n');
  });

  test('another sync of a running VM asks none of them', async () => {
    const before = pod.logs.filter(({ msg }) => /Evaluating|Starting PreCloudInitIso/.test(String(msg))).length;
    unwrap(await client.syncVirtualMachine(requestOf(vmi), PATIENT));
    const after = pod.logs.filter(({ msg }) => /Evaluating|Starting PreCloudInitIso/.test(String(msg))).length;
    expect(after).toBe(before);
  });

  test('the end of the VM is told to those that want to know', async () => {
    unwrap(await client.killVirtualMachine(requestOf(vmi), PATIENT));
    await eventually('the word of the end', () => existsSync(join(pod.root, 'third-told')));
    expect(readFileSync(join(pod.root, 'third-told'), 'utf8')).toBe('third');
    expect(existsSync(join(pod.root, 'second-told'))).toBe(false);
  });
});

test('a VM starts when its sidecar does not fail any more', { timeout: 120_000 }, async () => {
  await using pod = await startLauncherPod([...FLAGS, '1']);
  const marker = join(pod.root, 'word');
  const args = [
    '-C',
    '@virtwire/source',
    PROGRAM,
    join(pod.root, 'kubevirt-hooks/a/a.sock'),
    'v1alpha3',
    'word',
    marker,
  ];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'ignore', 'inherit'] });
  try {
    await pod.ear.open();
    await pod.waitUntilReady();
    using client = await pod.connect();
    const { spec, ...rest } = createVmi({ name: 'vm1', uid: UID });
    const devices = { ...spec.domain.devices, disks };
    const small = { ...rest, spec: { ...spec, domain: { ...spec.domain, devices }, volumes: vmi.spec.volumes } };
    const failure = async (): Promise<string | undefined> => {
      const result = await client.syncVirtualMachine(requestOf(small), PATIENT);
      return result.ok ? undefined : result.error.detail;
    };
    for (const call of ['PreCloudInitIso', 'OnDefineDomain']) writeFileSync(`${marker}-breaks-${call}`, '');
    const text = 'rpc error: code = Unknown desc =';
    expect(await failure()).toBe(`PreCloudInitIso hook failed: ${text} PreCloudInitIso was told to fail`);
    rmSync(`${marker}-breaks-PreCloudInitIso`);
    expect(await failure()).toBe(`${text} OnDefineDomain was told to fail`);
    rmSync(`${marker}-breaks-OnDefineDomain`);
    expect(await failure()).toBeUndefined();
    await pod.ear.hear('Running', (e) => e.domain.Status.Status === 'Running');
  } finally {
    child.kill('SIGKILL');
  }
});

test('a launcher without its sidecars ends with the reason', { timeout: 60_000 }, async () => {
  await using pod = await startLauncherPod([...FLAGS, '1', '--qemu-timeout', '2s']);
  expect(await pod.exited).toBe(2);
  expect(pod.output()).toContain('panic: Failed to collect all expected sidecar hook sockets within given timeout');
});
