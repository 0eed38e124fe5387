import { unwrap, vmiRequest } from '@virtwire/shared-proto';
import type { CallResult } from '@virtwire/shared-proto';
import { renderVmiJson } from '@virtwire/vm-model';
import type { Vmi } from '@virtwire/vm-model';
import { expect, test } from 'vitest';
import { systemClock } from '../config/clock.ts';
import type { Clock } from '../config/clock.ts';
import { eventually, startLauncherOnFake } from '../testing/launcher-on-fake.ts';
import type { LauncherOnFake } from '../testing/launcher-on-fake.ts';

type Guest = Parameters<typeof startLauncherOnFake>[2];

async function startRunning(guest: Guest = {}, clock: Clock = systemClock): Promise<LauncherOnFake> {
  const launcher = await startLauncherOnFake([], {}, guest, { clock });
  launcher.startQemu();
  unwrap(await launcher.client.syncVirtualMachine(launcher.request));
  await eventually('Running', () => launcher.events.some(({ domain }) => domain.Status.Status === 'Running'));
  return launcher;
}

const about = (vmi: Vmi, status: object): ReturnType<typeof vmiRequest> =>
  vmiRequest(renderVmiJson({ ...vmi, status: { ...vmi.status, ...status } }));

const words = (result: CallResult<unknown>): string | undefined => (result.ok ? undefined : result.error.detail);

test('the time at which the guest was asked to go is told once, and stays when it is asked again', async () => {
  let aheadMs = 0;
  const clock: Clock = { ...systemClock, now: () => systemClock.now() + aheadMs };
  await using launcher = await startRunning({ onShutdown: 'ignore' }, clock);
  const { client, events, request } = launcher;
  const askedAt = (): string | undefined =>
    events.at(-1)?.domain.Spec.Metadata.KubeVirt.GracePeriod?.DeletionTimestamp ?? undefined;
  unwrap(await client.shutdownVirtualMachine(request));
  await eventually('the time', () => askedAt() !== undefined);
  const first = askedAt();
  aheadMs = 60_000;
  unwrap(await client.shutdownVirtualMachine(request));
  launcher.daemon.domain(launcher.domainName).suspend();
  await eventually('what came after', () => events.at(-1)?.domain.Status.Status === 'Paused');
  expect(askedAt()).toBe(first);
});

test('output of a command reaches the caller as the guest printed it', async () => {
  const output = '  two lines \nand a blank \n\n';
  const reply = { exited: true, exitcode: 3, 'out-data': Buffer.from(output).toString('base64') };
  await using launcher = await startRunning({ agent: { 'guest-exec-status': () => reply } });
  const { client, daemon, domainName } = launcher;
  daemon.domain(domainName).connectAgent();
  const command = { domainName, Command: 'cat', Args: [], timeoutSeconds: 5 };
  expect(unwrap(await client.exec(command))).toMatchObject({ exitCode: 3, stdOut: output });
});

test("libvirt's refusal of a question about SEV has the form of all of libvirt's errors", async () => {
  await using launcher = await startRunning();
  expect(words(await launcher.client.getSEVInfo())).toBe(
    "LibvirtError(Code=84, Domain=10, Message='Operation not supported: QEMU does not support SEV guest')",
  );
});

test('a VM whose disks are not tracked is backed up by nobody, and keeps no checkpoint', async () => {
  await using launcher = await startRunning();
  const { client, request } = launcher;
  const { vmi } = request;
  const backup = await client.backupVirtualMachine({ vmi, options: Buffer.from('{"cmd":"Start"}') });
  expect(words(backup)).toBe('Backup failed ChangedBlockTracking is not enabled');
  const checkpoint = await client.redefineCheckpoint({ vmi, checkpoint: Buffer.from('{"name":"c"}') });
  expect(words(checkpoint)).toBe('Redefine checkpoint failed: ChangedBlockTracking is not enabled');
});

test.each<[what: string, podName: string | undefined, targetPod: string, ends: boolean]>([
  ['its own pod', 'virt-launcher-vm1-b', 'virt-launcher-vm1-b', true],
  ['another pod', 'virt-launcher-vm1-b', 'virt-launcher-vm1-c', false],
  ['no pod, and it does not know its own', undefined, '', false],
])('a launcher that waits for its VM is told to clean up %s', async (_what, podName, targetPod, ends) => {
  const env = podName === undefined ? {} : { POD_NAME: podName };
  await using launcher = await startLauncherOnFake([], env);
  const { client, vmi } = launcher;
  let hasEnded = false;
  const over = (): void => void (hasEnded = true);
  launcher.ended.then(over, over);
  unwrap(await client.signalTargetPodCleanup(about(vmi, { migrationState: { targetPod } })));
  if (ends) await eventually('the end of the launcher', () => hasEnded);
  else {
    // A launcher that waits still takes a VM.
    launcher.startQemu();
    unwrap(await client.syncVirtualMachine(launcher.request));
    await eventually('Running', () => launcher.events.some(({ domain }) => domain.Status.Status === 'Running'));
  }
  expect(hasEnded).toBe(ends);
});
