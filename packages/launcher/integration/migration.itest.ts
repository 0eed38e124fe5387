import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { cmdV1, unwrap } from '@virtwire/shared-proto';
import { parseDomainJson } from '@virtwire/vm-model';
import type { Vmi } from '@virtwire/vm-model';
import { describe, expect, test } from 'vitest';
import { createVmi, hasGuest, requestOf } from './support/guest.ts';
import { memoryOf, notePauses, startScene, untilCopying } from './support/migration-scene.ts';
import type { Scene } from './support/migration-scene.ts';
import { hearEnd, migrating, migrationOf, OPTIONS, startMigration } from './support/migration.ts';
import type { Side } from './support/migration.ts';
import { eventually } from './support/sandbox.ts';

const UID = '7a1b2c3d-0000-4000-8000-000000000021';
const NAME = 'default_vm1';
const vmi = createVmi({ name: 'vm1', uid: UID, withGuest: true });
const LIMIT_MS = 600_000;
const PATIENT = { timeoutMs: 60_000 };
/** So slow that there is time to do something in the middle. */
const SLOW = { ...OPTIONS, Bandwidth: '1Mi', ParallelMigrationThreads: null };
const USERFAULTFD = '/proc/sys/vm/unprivileged_userfaultfd';

/** The guest's own work goes on. */
async function expectPulse(side: Side): Promise<void> {
  const look = (): Promise<string> => side.run('cat /run/pulse');
  const before = await look();
  await side.run('sleep 2');
  expect(Number(await look())).toBeGreaterThan(Number(before));
}

async function statusOf({ client }: Side): Promise<string> {
  return parseDomainJson(unwrap(await client.getDomain()).domain).Status.Status ?? '';
}

async function expectToStay({ source, noise }: Scene, migrationUid: string): Promise<void> {
  expect(migrationOf(await hearEnd(source, migrationUid))).toMatchObject({ Failed: true });
  expect(await memoryOf(source)).toBe(noise);
  await expectPulse(source);
  expect(await statusOf(source)).toBe('Running');
}

async function expectToHaveMoved({ source, target, noise }: Scene, migrationUid: string): Promise<void> {
  expect(migrationOf(await hearEnd(source, migrationUid))?.Failed ?? false).toBe(false);
  await hearEnd(target, migrationUid);
  expect(await memoryOf(target)).toBe(noise);
  await expectPulse(target);
}

/** Lets QEMU fetch memory after the switch, which nodes of KubeVirt allow by a seccomp profile. */
function allowUserFaults(): Disposable {
  const before = readFileSync(USERFAULTFD, 'utf8');
  writeFileSync(USERFAULTFD, '1');
  return { [Symbol.dispose]: () => writeFileSync(USERFAULTFD, before) };
}

describe.runIf(hasGuest)('migration between two pods (scripts/guest/build.sh)', { timeout: LIMIT_MS }, () => {
  test('FM-9.7 a guest goes on with its memory and the right time, and both launchers tell of the end', async () => {
    await using scene = await startScene(vmi);
    const { source, target } = scene;
    const pauses = await notePauses(scene);
    const moving = migrating(vmi, 'mig-1');

    await startMigration(source, target, moving);

    await expectToHaveMoved(scene, 'mig-1');
    expect(migrationOf(await hearEnd(source, 'mig-1'))).toMatchObject({ Mode: 'PreCopy', Completed: true });
    await target.pod.ear.hear('the domain', (e) => e.type === 'ADDED' && e.domain.Status.Reason === 'Migration');
    await target.pod.ear.hear('the guest', (e) => e.domain.Status.Status === 'Running');
    await source.pod.ear.hear('its departure', (e) => e.domain.Status.Reason === 'Migrated');
    unwrap(await target.client.finalizeVirtualMachineMigration(requestOf(moving), PATIENT));
    await target.pod.waitForLog('guest VM time sync finished successfully');
    await eventually('the statistics of the job', () => pauses.length > 0);
    process.stderr.write(`the guest was paused for ${pauses.join(', ')} ms\n`);
    unwrap(await source.client.deleteVirtualMachine(requestOf(vmi)));
    expect(await source.pod.exited).toBe(0);
  });

  test('FM-8.1 FM-8.9 FM-8.10 asked for twice it runs once; meanwhile all answers come; cancelled, the guest stays', async () => {
    await using scene = await startScene(vmi);
    const { source, target } = scene;
    const moving = migrating(vmi, 'mig-1');
    await startMigration(source, target, moving, SLOW);
    await untilCopying(scene);
    await startMigration(source, target, moving, SLOW);
    expect((await source.client.guestPing({ domainName: NAME, timeoutSeconds: 1 }, PATIENT)).ok).toBe(true);
    const stats = JSON.parse(unwrap(await source.client.getDomainStats()).domainStats) as Record<string, object>;
    expect(stats['MigrateDomainJobInfo']).toMatchObject({ DataRemainingSet: true });
    expect(JSON.parse(unwrap(await target.client.getDomainStats()).domainStats)).toMatchObject({ Name: NAME });
    expect(await statusOf(target)).toBe('Paused');

    unwrap(await source.client.cancelVirtualMachineMigration(requestOf(moving), PATIENT));
    unwrap(await source.client.cancelVirtualMachineMigration(requestOf(moving), PATIENT));

    await expectToStay(scene, 'mig-1');
    expect(migrationOf(await hearEnd(source, 'mig-1'))).toMatchObject({
      AbortStatus: 'Succeeded',
      FailureReason: 'Live migration has been aborted',
    });
    const { vmi: name } = requestOf(moving);
    const options = Buffer.from(JSON.stringify(OPTIONS));
    const again = await source.client.migrateVirtualMachine({ vmi: name, options }, PATIENT);
    expect(again.ok ? '' : again.error.detail).toMatch(/^migration job mig-1 already executed, finished at /);
    unwrap(await source.client.cancelVirtualMachineMigration(requestOf(moving), PATIENT));
  });

  test.each<[string, (scene: Scene) => void]>([
    ['the target’s QEMU dies', ({ target }) => process.kill(target.pod.qemuPid() ?? 0, 'SIGKILL')],
    ['the target’s launcher dies', ({ target }) => process.kill(target.pod.launcherPid(), 'SIGKILL')],
    ['the way between the nodes breaks', ({ bridge }) => bridge.cut()],
  ])('%s: the guest stays on its source', async (_title, breakIt) => {
    await using scene = await startScene(vmi);
    await startMigration(scene.source, scene.target, migrating(vmi, 'mig-1'), SLOW);
    await untilCopying(scene);
    breakIt(scene);
    await expectToStay(scene, 'mig-1');
  });

  test('FM-8.5 a source that dies when the guest has left does not matter to the guest', async () => {
    await using scene = await startScene(vmi);
    const { source, target, noise } = scene;
    await startMigration(source, target, migrating(vmi, 'mig-1'));
    await target.pod.ear.hear('the guest', (e) => e.domain.Status.Status === 'Running');
    process.kill(source.pod.launcherPid(), 'SIGKILL');
    await hearEnd(target, 'mig-1');
    expect(await memoryOf(target)).toBe(noise);
    await expectPulse(target);
  });

  test('FM-2.10 a guest that its user paused arrives paused, and goes on when it is told to', async () => {
    await using scene = await startScene(vmi);
    const { source, target, noise } = scene;
    unwrap(await source.client.pauseVirtualMachine(requestOf(vmi), PATIENT));
    const paused = { conditions: [{ type: 'Paused', status: 'True' as const }] };
    await startMigration(source, target, migrating(vmi, 'mig-1', paused));
    expect(migrationOf(await hearEnd(source, 'mig-1'))?.Failed ?? false).toBe(false);
    const { domain } = await hearEnd(target, 'mig-1');
    expect(domain.Status).toMatchObject({ Status: 'Paused', Reason: 'User' });
    unwrap(await target.client.syncVirtualMachine(requestOf(migrating(vmi, 'mig-1')), PATIENT));
    expect(await statusOf(target)).toBe('Paused');
    unwrap(await target.client.unpauseVirtualMachine(requestOf(vmi), PATIENT));
    expect(await memoryOf(target)).toBe(noise);
    await expectPulse(target);
  });

  test.runIf(existsSync(USERFAULTFD))('a guest that takes too long fetches its memory after the switch', async () => {
    using _faults = allowUserFaults();
    await using scene = await startScene(vmi);
    const disrupting = { AllowPostCopy: true, AllowWorkloadDisruption: true, CompletionTimeoutPerGiB: 1 };
    await startMigration(scene.source, scene.target, migrating(vmi, 'mig-1'), { ...SLOW, ...disrupting });
    await expectToHaveMoved(scene, 'mig-1');
    expect(migrationOf(await hearEnd(scene.source, 'mig-1'))).toMatchObject({ Mode: 'PostCopy' });
  });

  test('a guest that takes too long is paused to get through, and goes on at its target', async () => {
    await using scene = await startScene(vmi);
    await scene.source.run('(while :; do cp /run/noise /run/dirty; done) >/dev/null 2>&1 &');
    const disrupting = { Bandwidth: '16Mi', AllowWorkloadDisruption: true, CompletionTimeoutPerGiB: 10 };
    await startMigration(scene.source, scene.target, migrating(vmi, 'mig-1'), { ...SLOW, ...disrupting });
    await scene.source.pod.waitForLog('Pausing the guest to allow migration to complete');
    await expectToHaveMoved(scene, 'mig-1');
    expect(migrationOf(await hearEnd(scene.source, 'mig-1'))).toMatchObject({ Mode: 'Paused' });
  });

  test('launchers that run as root move guests too', async () => {
    await using scene = await startScene(vmi, { asRoot: true });
    await startMigration(scene.source, scene.target, migrating(vmi, 'mig-1', { runtimeUser: 0 }));
    await expectToHaveMoved(scene, 'mig-1');
  });

  test('disks that the nodes do not share come along', async () => {
    const { domain } = vmi.spec;
    const disks = [{ name: 'data', disk: { bus: 'virtio' as const } }];
    const volumes = [{ name: 'data', emptyDisk: { capacity: '64Mi' } }];
    const devices = { ...domain.devices, disks };
    const withDisk: Vmi = { ...vmi, spec: { ...vmi.spec, domain: { ...domain, devices }, volumes } };
    await using scene = await startScene(withDisk);
    const { source, target } = scene;
    await source.run('dd if=/run/noise of=/dev/vda bs=1M 2>/dev/null; sync');
    const onDisk = await source.run('dd if=/dev/vda bs=1M count=16 2>/dev/null | sha256sum');

    await startMigration(source, target, migrating(withDisk, 'mig-1', { migrationMethod: 'BlockMigration' }));

    await expectToHaveMoved(scene, 'mig-1');
    await target.run('echo 3 >/proc/sys/vm/drop_caches');
    expect(await target.run('dd if=/dev/vda bs=1M count=16 iflag=direct 2>/dev/null | sha256sum')).toBe(onDisk);
  });

  test('a pinned guest lands on CPUs of its target, which libvirt’s hook tells', async () => {
    const { domain } = vmi.spec;
    const cpu = { cores: 1, sockets: 1, threads: 1, dedicatedCpuPlacement: true };
    const pinned: Vmi = { ...vmi, spec: { ...vmi.spec, domain: { ...domain, cpu } } };
    const onCpu = (id: number) =>
      cmdV1.VirtualMachineOptions.fromPartial({
        topology: { numa_cells: [{ id: 0, cpus: [{ id, siblings: [id] }] }] },
      });
    await using scene = await startScene(pinned, { flags: ['--libvirt-hook-server-and-client'], options: onCpu(0) });
    const { source, target } = scene;
    const pins = async (side: Side) => {
      const shown = parseDomainJson(unwrap(await side.client.getDomain()).domain);
      return shown.Spec.CPUTune?.VCPUPin?.map(({ CPUSet }) => CPUSet);
    };
    expect(await pins(source)).toEqual(['0']);

    await startMigration(source, target, migrating(pinned, 'mig-1'), OPTIONS, onCpu(1));

    await expectToHaveMoved(scene, 'mig-1');
    await target.pod.waitForLog('the incoming domain was adapted to this pod');
    expect(await pins(target)).toEqual(['1']);
  });
});
