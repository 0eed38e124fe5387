import { appendFileSync, existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Connection } from '@virtwire/libvirt';
import { connect } from '@virtwire/libvirt';
import type { CmdClient } from '@virtwire/shared-proto';
import { unwrap } from '@virtwire/shared-proto';
import { describe, expect, test } from 'vitest';
import { createVmi, hasGuest, requestOf } from './support/guest.ts';
import { holdDump } from './support/held-dump.ts';
import { memoryOf, startScene, untilCopying } from './support/migration-scene.ts';
import { hearEnd, migrating, migrationOf, OPTIONS, startMigration } from './support/migration.ts';
import { playObedientHandler } from './support/obedient-handler.ts';
import type { LauncherPod } from './support/sandbox.ts';
import { startLauncherPod } from './support/sandbox.ts';
import { backupStart, checkpointOf, imageOf, nbdSocketOf, provideFile } from './support/tracked-machine.ts';
import { TRACKED_VMI, TrackedMachine } from './support/tracked-machine.ts';

const UID = '7a1b2c3d-0000-4000-8000-000000000021';
const LIMIT = { timeout: 400_000 };
const SHORT = ['--grace-period-seconds', '4'];
const CHUNK = Buffer.alloc(64 << 20, 'x');
const DISK_CHUNKS = 16;
const NAME = 'default_vm1';
const SLOW = { ...OPTIONS, Bandwidth: '1Mi', ParallelMigrationThreads: null };
const bare = createVmi({ name: 'vm1', uid: UID });
const withGuest = createVmi({ name: 'vm1', uid: UID, withGuest: true });

async function startBare(flags: readonly string[]): Promise<{ pod: LauncherPod; client: CmdClient }> {
  const pod = await startLauncherPod(['--name', 'vm1', '--namespace', 'default', '--uid', UID, ...flags]);
  await pod.ear.open();
  await pod.waitUntilReady();
  const client = await pod.connect();
  unwrap(await client.syncVirtualMachine(requestOf(bare), { timeoutMs: 60_000 }));
  await pod.ear.hear('Running', (e) => e.domain.Status.Status === 'Running');
  return { pod, client };
}

const terminate = (pod: LauncherPod): void => void process.kill(pod.launcherPid(), 'SIGTERM');

/** A VM whose tracked disk holds data enough for a backup that is not done at once. */
function startTracked(): Promise<TrackedMachine> {
  const provide = (pod: LauncherPod): void =>
    provideFile(imageOf(pod), () => {
      for (let i = 0; i < DISK_CHUNKS; i++) appendFileSync(imageOf(pod), CHUNK);
    });
  return TrackedMachine.start(provide, 'Initializing', { flags: SHORT, withGuest: false });
}

function connectTo(pod: LauncherPod): Promise<Connection> {
  return connect({ uri: 'qemu:///session', socketPath: join(pod.root, 'libvirt/libvirt-sock') });
}

/** Holds the backup that has just begun to a crawl. */
async function slowBackup(libvirt: Connection): Promise<void> {
  const domain = await libvirt.lookupDomainByName(NAME);
  const ask = async (execute: string, args: object): Promise<unknown> =>
    JSON.parse(await domain.monitorCommand(JSON.stringify({ execute, arguments: args })));
  const { return: jobs } = (await ask('query-block-jobs', {})) as { return: { type: string; device: string }[] };
  const device = jobs.find(({ type }) => type === 'backup')?.device;
  expect(await ask('block-job-set-speed', { device, speed: 1 << 20 })).toHaveProperty('return');
}

describe('SIGTERM in the middle of a memory dump', LIMIT, () => {
  test('the VM has its grace period; its end and that of the dump are told in one, and no half file stays', async () => {
    const { pod, client } = await startBare(SHORT);
    await using _pod = pod;
    using dump = await holdDump(pod, client, requestOf(bare));
    dump.flow(20);
    using handler = playObedientHandler(pod, client, requestOf(bare));
    terminate(pod);
    const { domain } = await handler.heardOff;
    expect(domain.Spec.Metadata.KubeVirt.MemoryDump).toMatchObject({
      FileName: dump.fileName,
      Completed: true,
      Failed: true,
    });
    expect(await pod.exited).toBe(0);
    expect(dump.isLeft()).toBe(false);
    client.close();
  });

  test('storage that hangs holds up neither the word of the end nor the pod', async () => {
    const { pod, client } = await startBare(SHORT);
    await using _pod = pod;
    using dump = await holdDump(pod, client, requestOf(bare));
    using handler = playObedientHandler(pod, client, requestOf(bare), { shutsDown: false });
    terminate(pod);
    const { domain } = await handler.heardOff;
    expect(domain.Spec.Metadata.KubeVirt.MemoryDump).toMatchObject({
      FailureReason: 'Domain memory dump failed: the VM has ended',
    });
    expect(dump.isLeft()).toBe(false);
    expect(await pod.exited).toBe(0);
    client.close();
  });
});

describe('SIGTERM in the middle of a backup', LIMIT, () => {
  test('pushed: the handler hears that it failed when it hears of the end, and the launcher ends', async () => {
    await using machine = await startTracked();
    const { pod, client } = machine;
    await using libvirt = await connectTo(pod);
    unwrap(await machine.request({ ...backupStart('push', 1), skipQuiesce: true }));
    await slowBackup(libvirt);
    using handler = playObedientHandler(pod, client, { ...requestOf(bare), vmi: TRACKED_VMI });
    terminate(pod);
    const { domain } = await handler.heardOff;
    expect(domain.Spec.Metadata.KubeVirt.Backup).toMatchObject({
      ...{ Name: 'push', Completed: true, Failed: true, BackupMsg: 'backup aborted' },
      CheckpointName: checkpointOf('push', 1),
    });
    expect(await pod.exited).toBe(0);
  });

  test('pulled: what was not ended by whoever pulls it has failed', async () => {
    await using machine = await startTracked();
    const { pod, client } = machine;
    unwrap(await machine.request({ ...backupStart('pull', 1), mode: 'Pull', skipQuiesce: true }));
    expect(existsSync(nbdSocketOf(pod))).toBe(true);
    using handler = playObedientHandler(pod, client, { ...requestOf(bare), vmi: TRACKED_VMI });
    terminate(pod);
    const { domain } = await handler.heardOff;
    expect(domain.Spec.Metadata.KubeVirt.Backup).toMatchObject({
      ...{ Name: 'pull', Completed: true, Failed: true, BackupMsg: 'the VM ended before its backup' },
    });
    expect(await pod.exited).toBe(0);
  });
});

describe.runIf(hasGuest)('SIGTERM in the middle of a migration (scripts/guest/build.sh)', LIMIT, () => {
  test('on the source: a guest that powers off on the way takes its migration along, and all is told at once', async () => {
    await using scene = await startScene(withGuest, { flags: ['--grace-period-seconds', '60'] });
    const { source, target } = scene;
    await startMigration(source, target, migrating(withGuest, 'mig-1'), SLOW);
    await untilCopying(scene);
    using handler = playObedientHandler(source.pod, source.client, requestOf(withGuest));
    terminate(source.pod);
    const off = await handler.heardOff;
    expect(off.domain.Status.Reason).toBe('Shutdown');
    expect(migrationOf(off)).toMatchObject({ UID: 'mig-1', Failed: true, EndTimestamp: expect.any(String) as string });
    expect(await source.pod.exited).toBe(0);
    expect(await target.pod.exited).toBe(0);
  });

  test('on the source: a guest that gets through in its grace period lives on, and the launcher ends', async () => {
    await using scene = await startScene(withGuest, { flags: ['--grace-period-seconds', '60'] });
    const { source, target, noise } = scene;
    await startMigration(source, target, migrating(withGuest, 'mig-1'), { ...SLOW, Bandwidth: '64Mi' });
    await untilCopying(scene);
    using handler = playObedientHandler(source.pod, source.client, requestOf(withGuest), { shutsDown: false });
    terminate(source.pod);
    const off = await handler.heardOff;
    expect(off.domain.Status.Reason).toBe('Migrated');
    expect(migrationOf(off)).toMatchObject({ UID: 'mig-1', Completed: true });
    expect(await source.pod.exited).toBe(0);
    await hearEnd(target, 'mig-1');
    expect(await memoryOf(target)).toBe(noise);
  });

  test('on the target: it ends with its grace period, and the guest stays on its source', async () => {
    await using scene = await startScene(withGuest, { flags: ['--grace-period-seconds', '12'] });
    const { source, target, noise } = scene;
    await startMigration(source, target, migrating(withGuest, 'mig-1'), SLOW);
    await untilCopying(scene);
    terminate(target.pod);
    await target.pod.ear.hear(
      'the mark',
      ({ domain }) => domain.Spec.Metadata.KubeVirt.GracePeriod?.MarkedForGracefulShutdown === true,
    );
    expect(await target.pod.exited).toBe(0);
    expect(migrationOf(await hearEnd(source, 'mig-1'))).toMatchObject({ Failed: true });
    expect(await memoryOf(source)).toBe(noise);
  });
});
