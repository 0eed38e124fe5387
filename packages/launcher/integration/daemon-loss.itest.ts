import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { unwrap } from '@virtwire/shared-proto';
import type { CmdClient } from '@virtwire/shared-proto';
import { describe, expect, test } from 'vitest';
import { createVmi, hasGuest, requestOf } from './support/guest.ts';
import { askForDump, holdDump } from './support/held-dump.ts';
import type { Scene } from './support/migration-scene.ts';
import { memoryOf, startScene, untilCopying } from './support/migration-scene.ts';
import { hearEnd, migrating, migrationOf, OPTIONS, startMigration } from './support/migration.ts';
import type { LauncherPod } from './support/sandbox.ts';
import { eventually, startLauncherPod } from './support/sandbox.ts';
import { backupStart, checkpointOf, imageOf, provideFile, qemuImg, TrackedMachine } from './support/tracked-machine.ts';

const UID = '7a1b2c3d-0000-4000-8000-000000000021';
const LIMIT = { timeout: 400_000 };
const PATIENT = { timeoutMs: 60_000 };
/** Longer than the keepalive of both ends takes to give the other up. */
const LOSS_LIMIT_MS = 90_000;
const SLOW = { ...OPTIONS, Bandwidth: '1Mi', ParallelMigrationThreads: null };
const bare = createVmi({ name: 'vm1', uid: UID });
const running = requestOf(createVmi({ name: 'vm1', uid: UID, phase: 'Running' }));
const withGuest = createVmi({ name: 'vm1', uid: UID, withGuest: true });

async function startBare(): Promise<{ pod: LauncherPod; client: CmdClient }> {
  const pod = await startLauncherPod(['--name', 'vm1', '--namespace', 'default', '--uid', UID]);
  await pod.ear.open();
  await pod.waitUntilReady();
  const client = await pod.connect();
  unwrap(await client.syncVirtualMachine(requestOf(bare), PATIENT));
  await pod.ear.hear('Running', (e) => e.domain.Status.Status === 'Running');
  return { pod, client };
}

/** Sends a signal to libvirt's daemon; what ends the daemon's rest. */
async function signalDaemon(pod: LauncherPod, signal: 'SIGKILL' | 'SIGSTOP'): Promise<() => void> {
  const pid = await eventually('the daemon', () => pod.daemonPid());
  process.kill(pid, signal);
  return () => process.kill(pid, 'SIGCONT');
}

/** Waits until libvirt has begun a backup of its own view, and QEMU knows nothing of it yet. */
function untilBeginning(pod: LauncherPod): Promise<true> {
  const status = join(pod.root, 'libvirt/qemu/run/default_vm1.xml');
  return eventually('the beginning', () => readFileSync(status, 'utf8').includes("async='backup'") || undefined);
}

const statusOf = ({ ear }: LauncherPod): string => ear.domains.at(-1)?.domain.Status.Status ?? '';

async function hearDumpEnd(pod: LauncherPod, file: string) {
  const { domain } = await pod.ear.hear(
    `the end of ${file}`,
    ({ domain: { Spec } }) => {
      const { FileName, Completed } = Spec.Metadata.KubeVirt.MemoryDump ?? {};
      return FileName === file && Completed === true;
    },
    LOSS_LIMIT_MS,
  );
  return domain.Spec.Metadata.KubeVirt.MemoryDump;
}

describe('libvirt is lost in the middle of a memory dump', LIMIT, () => {
  test.each(['SIGKILL', 'SIGSTOP'] as const)(
    '%s: the dump has failed and leaves no file, the guest goes on, and the next dump works',
    async (signal) => {
      const { pod, client } = await startBare();
      await using _pod = pod;
      using dump = await holdDump(pod, client, requestOf(bare));
      const revive = await signalDaemon(pod, signal);
      await eventually('the loss', () => !dump.isLeft(), LOSS_LIMIT_MS);
      if (signal === 'SIGSTOP') revive();
      expect(await hearDumpEnd(pod, dump.fileName)).toMatchObject({ Failed: true });
      dump.flow(1);
      await expect
        .poll(async () => (await client.syncVirtualMachine(running, PATIENT)).ok, { timeout: 60_000, interval: 500 })
        .toBe(true);
      await eventually('the guest', () => statusOf(pod) === 'Running');
      let tries = 0;
      // The launcher's connection for long calls may come back a little later than the other.
      const dumpAgain = async (): Promise<string> => {
        const file = `next-${String(++tries)}.memory.dump`;
        await askForDump(client, requestOf(bare), file);
        return (await hearDumpEnd(pod, file))?.FailureReason ?? '';
      };
      await expect.poll(dumpAgain, { timeout: 60_000, interval: 500 }).toBe('');
      client.close();
    },
  );

  test('a sync in the middle of a dump leaves the guest to it', async () => {
    const { pod, client } = await startBare();
    await using _pod = pod;
    using dump = await holdDump(pod, client, requestOf(bare));
    unwrap(await client.syncVirtualMachine(running, PATIENT));
    expect(statusOf(pod)).toBe('Paused');
    dump.flow(1);
    expect((await hearDumpEnd(pod, dump.fileName))?.FailureReason ?? '').toBe('');
    await eventually('the guest', () => statusOf(pod) === 'Running');
    client.close();
  });
});

describe('libvirt is lost as it begins a backup', LIMIT, () => {
  test.each(['SIGKILL', 'SIGSTOP'] as const)(
    '%s: the handler is told that it did not begin, and the next backup is whole',
    async (signal) => {
      const provide = (pod: LauncherPod): void =>
        provideFile(imageOf(pod), () => qemuImg('create', '-f', 'raw', imageOf(pod), '64M'));
      await using machine = await TrackedMachine.start(provide, 'Initializing', { withGuest: false });
      const { pod } = machine;
      const qemu = await eventually('QEMU', () => pod.qemuPid());
      process.kill(qemu, 'SIGSTOP');
      const beginning = machine.request({ ...backupStart('lost', 1), skipQuiesce: true });
      await untilBeginning(pod);
      const revive = await signalDaemon(pod, signal);
      expect((await beginning).ok).toBe(false);
      process.kill(qemu, 'SIGCONT');
      if (signal === 'SIGSTOP') revive();
      await pod.waitForLog(/^Libvirt reconnected, domain default_vm1/);
      await eventually(
        'word of it',
        () => pod.ear.domains.at(-1)?.domain.Spec.Metadata.KubeVirt.Backup?.Name === undefined,
      );
      const next = { ...backupStart('next', 2), skipQuiesce: true };
      await expect.poll(async () => (await machine.request(next)).ok, { timeout: 60_000, interval: 500 }).toBe(true);
      expect((await machine.ended('next')).Failed ?? false).toBe(false);
      expect(machine.bytesOf(machine.pushed('next', checkpointOf('next', 2))).length).toBe(64 << 20);
    },
  );
});

describe.runIf(hasGuest)('libvirt is lost in the middle of a migration (scripts/guest/build.sh)', LIMIT, () => {
  test.each<[string, 'SIGKILL' | 'SIGSTOP', (scene: Scene) => LauncherPod]>([
    ['the source’s', 'SIGKILL', ({ source }) => source.pod],
    ['the target’s', 'SIGKILL', ({ target }) => target.pod],
    ['the source’s', 'SIGSTOP', ({ source }) => source.pod],
  ])('%s, %s: the guest stays, the source tells of the failure, and the target ends', async (_side, signal, podOf) => {
    await using scene = await startScene(withGuest);
    const { source, target, noise } = scene;
    await startMigration(source, target, migrating(withGuest, 'mig-1'), SLOW);
    await untilCopying(scene);
    const revive = await signalDaemon(podOf(scene), signal);
    expect(await target.pod.exited).toBe(0);
    if (signal === 'SIGSTOP') {
      await source.pod.waitForLog(/^Connection to libvirt lost/);
      revive();
    }
    expect(migrationOf(await hearEnd(source, 'mig-1'))).toMatchObject({ Failed: true });
    await eventually('the guest', () => statusOf(source.pod) === 'Running');
    // The launcher's connection for questions to the guest may come back a little later than the other.
    await expect.poll(() => memoryOf(source), { timeout: 60_000, interval: 500 }).toBe(noise);
  });
});
