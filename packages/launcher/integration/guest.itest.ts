import { unwrap } from '@virtwire/shared-proto';
import type { CmdClient } from '@virtwire/shared-proto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createVmi, hasGuest, provideKernel, requestOf } from './support/guest.ts';
import type { LauncherPod } from './support/sandbox.ts';
import { eventually, startLauncherPod } from './support/sandbox.ts';

const UID = '7a1b2c3d-0000-4000-8000-000000000003';
const FLAGS = ['--name', 'vm1', '--namespace', 'default', '--uid', UID];
const vmi = createVmi({ name: 'vm1', uid: UID, withGuest: true });

async function startGuest(flags: readonly string[] = []): Promise<LauncherPod> {
  const pod = await startLauncherPod([...FLAGS, ...flags]);
  provideKernel(pod);
  await pod.ear.open();
  await pod.waitUntilReady();
  using client = await pod.connect();
  unwrap(await client.syncVirtualMachine(requestOf(vmi)));
  await pod.waitForLog('GuestAgentLifecycle event state 1 with reason 2 received');
  return pod;
}

describe.runIf(hasGuest)('a guest with an agent (scripts/guest/build.sh)', { timeout: 240_000 }, () => {
  let pod: LauncherPod;
  let client: CmdClient;
  const started: { pod?: LauncherPod; client?: CmdClient } = {};

  beforeAll(async () => {
    pod = await startGuest(['--qemu-fsfreeze-status-interval', '1s', '--qemu-agent-user-interval', '1s']);
    started.pod = pod;
    client = await pod.connect();
    started.client = client;
  }, 200_000);

  afterAll(async () => {
    started.client?.close();
    await started.pod?.[Symbol.asyncDispose]();
  });

  test('tells the handler its operating system, interfaces and freeze status', async () => {
    const { domain } = await pod.ear.hear('the agent', (e) => (e.domain.Status.OSInfo.Id ?? '') !== '');
    expect(domain.Status.OSInfo).toMatchObject({ Id: 'virtwire', PrettyName: 'virtwire guest 1' });
    await pod.ear.hear('the freeze status', (e) => e.domain.Status.FSFreezeStatus.Status === 'thawed');
  });

  test('answers what the agent said', async () => {
    const info = await eventually('guest info', () => pod.ear.domains.at(-1)).then(
      async () => JSON.parse(unwrap(await client.getGuestInfo()).guestInfoResponse) as Record<string, never>,
    );
    expect(info).toMatchObject({ os: { id: 'virtwire' }, fsFreezeStatus: 'thawed' });
    expect(info['supportedCommands']).toEqual(expect.arrayContaining([{ name: 'guest-ping', enabled: true }]));
    expect(JSON.parse(unwrap(await client.getUsers()).guestUserListResponse)).toEqual([]);
    expect(JSON.parse(unwrap(await client.getFilesystems()).guestFilesystemsResponse)).toBeInstanceOf(Array);
  });

  test('answers a ping; while it is paused the probe is excused', async () => {
    const ask = { domainName: 'default_vm1', timeoutSeconds: 1 };
    expect((await client.guestPing(ask)).ok).toBe(true);
    unwrap(await client.pauseVirtualMachine(requestOf(vmi)));
    expect((await client.guestPing(ask, { timeoutMs: 20_000 })).ok).toBe(true);
    await pod.waitForLog('Stopping agent poller for default_vm1 due to domain suspend');
    unwrap(await client.unpauseVirtualMachine(requestOf(vmi)));
    await pod.waitForLog('Starting agent poller for default_vm1 due to domain resume (agent connected)');
  });

  test('FM-9.7 its clock is set after the pause', async () => {
    await pod.waitForLog('guest VM time sync finished successfully');
  });

  test('powers off when it is asked to, and the launcher ends when the domain is deleted', async () => {
    unwrap(await client.shutdownVirtualMachine(requestOf(vmi)));
    const off = await pod.ear.hear(
      'Shutoff',
      (e) => e.domain.Status.Status === 'Shutoff' && e.domain.Status.Reason === 'Shutdown',
    );
    expect(off.domain.Spec.Metadata.KubeVirt.GracePeriod?.DeletionTimestamp).toBeDefined();
    unwrap(await client.deleteVirtualMachine(requestOf(vmi)));
    expect(await pod.exited).toBe(0);
  });
});

test.runIf(hasGuest)('FM-9.5 SIGTERM alone powers a guest down in time', { timeout: 240_000 }, async () => {
  await using pod = await startGuest();
  process.kill(pod.launcherPid(), 'SIGTERM');
  await pod.waitForLog('Signaled graceful shutdown for vm1');
  await pod.ear.hear('Shutoff', (e) => e.domain.Status.Reason === 'Shutdown');
  using client = await pod.connect();
  unwrap(await client.deleteVirtualMachine(requestOf(vmi)));
  expect(await pod.exited).toBe(0);
});
