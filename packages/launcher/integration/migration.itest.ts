import { join } from 'node:path';
import { connect } from '@virtwire/libvirt';
import type { Connection } from '@virtwire/libvirt';
import { cmdV1, unwrap } from '@virtwire/shared-proto';
import { parseDomainJson } from '@virtwire/vm-model';
import type { Vmi } from '@virtwire/vm-model';
import { describe, expect, test } from 'vitest';
import { createVmi, hasGuest, requestOf } from './support/guest.ts';
import {
  bridgePods,
  hearEnd,
  migrating,
  migrationOf,
  OPTIONS,
  startMigration,
  startSide,
} from './support/migration.ts';
import type { Bridge, Side } from './support/migration.ts';
import { eventually } from './support/sandbox.ts';

const UID = '7a1b2c3d-0000-4000-8000-000000000021';
const FLAGS = ['--name', 'vm1', '--namespace', 'default', '--uid', UID];
const NAME = 'default_vm1';
const vmi = createVmi({ name: 'vm1', uid: UID, withGuest: true });
const LIMIT_MS = 400_000;
const PATIENT = { timeoutMs: 60_000 };
/** So slow that there is time to do something in the middle. */
const SLOW = { ...OPTIONS, Bandwidth: '1Mi', ParallelMigrationThreads: null };

/** Both pods, the way between them, and a guest in the first. */
interface Scene extends AsyncDisposable {
  readonly source: Side;
  readonly target: Side;
  readonly bridge: Bridge;
  /** The source's libvirt. */
  readonly libvirt: Connection;
  /** Checksum of the noise in the guest's memory. */
  readonly noise: string;
}

async function startScene(
  guest: Vmi,
  flags: readonly string[] = [],
  options?: cmdV1.VirtualMachineOptions,
): Promise<Scene> {
  const stack = new AsyncDisposableStack();
  const source = stack.use(await startSide([...FLAGS, ...flags], NAME));
  const target = stack.use(await startSide([...FLAGS, ...flags], NAME));
  const bridge = stack.use(await bridgePods(source.pod, target.pod, UID));
  unwrap(
    await source.client.syncVirtualMachine({ ...requestOf(guest), ...(options === undefined ? {} : { options }) }),
  );
  await source.pod.waitForLog('GuestAgentLifecycle event state 1 with reason 2 received');
  await source.run('dd if=/dev/urandom of=/run/noise bs=1M count=16 2>/dev/null');
  await source.run(
    '(while :; do date +%s >/run/pulse.new; mv /run/pulse.new /run/pulse; sleep 0.1; done) >/dev/null 2>&1 &',
  );
  const noise = await source.run('sha256sum </run/noise; cat /proc/sys/kernel/random/boot_id');
  const socketPath = join(source.pod.root, 'libvirt/libvirt-sock');
  const libvirt = stack.use(await connect({ uri: 'qemu:///session', socketPath }));
  return { source, target, bridge, libvirt, noise, [Symbol.asyncDispose]: () => stack.disposeAsync() };
}

const memoryOf = (side: Side): Promise<string> =>
  side.run('sha256sum </run/noise; cat /proc/sys/kernel/random/boot_id');

/** The guest's own work goes on. */
async function expectPulse(side: Side): Promise<void> {
  const look = (): Promise<string> => side.run('cat /run/pulse');
  const before = await look();
  await side.run('sleep 2');
  expect(Number(await look())).toBeGreaterThan(Number(before));
}

/** Waits until memory is on its way. */
async function untilCopying({ libvirt }: Scene): Promise<void> {
  const domain = await libvirt.lookupDomainByName(NAME);
  let remaining = 0;
  await eventually('the copy of memory', () => {
    void domain.getJobStats().then(
      ({ params }) => (remaining = params.number('data_remaining') ?? 0),
      () => 0,
    );
    return remaining > 0;
  });
}

async function expectToStay(scene: Scene, migrationUid: string): Promise<void> {
  const { source, noise } = scene;
  expect(migrationOf(await hearEnd(source, migrationUid))).toMatchObject({ Failed: true });
  expect(await memoryOf(source)).toBe(noise);
  await expectPulse(source);
  const shown = JSON.parse(unwrap(await source.client.getDomain()).domain) as { Status: { Status: string } };
  expect(shown.Status.Status).toBe('Running');
}

describe.runIf(hasGuest)('migration between two pods (scripts/guest/build.sh)', { timeout: LIMIT_MS }, () => {
  test('a guest goes on with its memory, and both launchers tell of the end', async () => {
    await using scene = await startScene(vmi);
    const { source, target, libvirt, noise } = scene;
    const pauses: number[] = [];
    await libvirt.onDomainEvent('jobCompleted', ({ params }) => {
      pauses.push(...params.filter(({ field }) => field === 'downtime').map(({ value }) => Number(value)));
    });
    const moving = migrating(vmi, 'mig-1');

    await startMigration(scene.source, target, moving);

    expect(migrationOf(await hearEnd(source, 'mig-1'))).toMatchObject({ Mode: 'PreCopy', Completed: true });
    expect(migrationOf(await hearEnd(target, 'mig-1'))?.Failed ?? false).toBe(false);
    await target.pod.ear.hear('the domain', (e) => e.type === 'ADDED' && e.domain.Status.Reason === 'Migration');
    await target.pod.ear.hear('the guest', (e) => e.domain.Status.Status === 'Running');
    await source.pod.ear.hear('its departure', (e) => e.domain.Status.Reason === 'Migrated');
    expect(await memoryOf(target)).toBe(noise);
    await expectPulse(target);
    unwrap(await target.client.finalizeVirtualMachineMigration(requestOf(moving), PATIENT));
    await target.pod.waitForLog('guest VM time sync finished successfully');
    await eventually('the statistics of the job', () => pauses.length > 0);
    process.stderr.write(`the guest was paused for ${pauses.join(', ')} ms\n`);
    unwrap(await source.client.deleteVirtualMachine(requestOf(vmi)));
    expect(await source.pod.exited).toBe(0);
  });

  test('FM-8.1 a migration that is asked for twice runs once; cancelled in the middle, the guest stays', async () => {
    await using scene = await startScene(vmi);
    const { source, target } = scene;
    const moving = migrating(vmi, 'mig-1');
    await startMigration(source, target, moving, SLOW);
    await untilCopying(scene);
    await startMigration(source, target, moving, SLOW);
    const ask = { domainName: NAME, timeoutSeconds: 1 };
    expect((await source.client.guestPing(ask, PATIENT)).ok).toBe(true);

    unwrap(await source.client.cancelVirtualMachineMigration(requestOf(moving), PATIENT));
    unwrap(await source.client.cancelVirtualMachineMigration(requestOf(moving), PATIENT));

    await expectToStay(scene, 'mig-1');
    expect(migrationOf(await hearEnd(source, 'mig-1'))).toMatchObject({
      AbortStatus: 'Succeeded',
      FailureReason: 'Live migration has been aborted',
    });
    const again = await source.client.migrateVirtualMachine(
      { vmi: requestOf(moving).vmi, options: Buffer.from(JSON.stringify(OPTIONS)) },
      PATIENT,
    );
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

  test('disks that the nodes do not share come along', async () => {
    const { domain } = vmi.spec;
    const disks = [{ name: 'data', disk: { bus: 'virtio' as const } }];
    const volumes = [{ name: 'data', emptyDisk: { capacity: '64Mi' } }];
    const devices = { ...domain.devices, disks };
    const withDisk: Vmi = { ...vmi, spec: { ...vmi.spec, domain: { ...domain, devices }, volumes } };
    await using scene = await startScene(withDisk);
    const { source, target, noise } = scene;
    await source.run('dd if=/run/noise of=/dev/vda bs=1M 2>/dev/null; sync');
    const onDisk = await source.run('dd if=/dev/vda bs=1M count=16 2>/dev/null | sha256sum');

    await startMigration(source, target, migrating(withDisk, 'mig-1', { migrationMethod: 'BlockMigration' }));

    expect(migrationOf(await hearEnd(source, 'mig-1'))?.Failed ?? false).toBe(false);
    await hearEnd(target, 'mig-1');
    expect(await memoryOf(target)).toBe(noise);
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
    await using scene = await startScene(pinned, ['--libvirt-hook-server-and-client'], onCpu(0));
    const { source, target, noise } = scene;
    const pins = async (side: Side) => {
      const shown = parseDomainJson(unwrap(await side.client.getDomain()).domain);
      return shown.Spec.CPUTune?.VCPUPin?.map(({ CPUSet }) => CPUSet);
    };
    expect(await pins(source)).toEqual(['0']);

    await startMigration(source, target, migrating(pinned, 'mig-1'), OPTIONS, onCpu(1));

    await hearEnd(target, 'mig-1');
    await target.pod.waitForLog('the incoming domain was adapted to this pod');
    expect(await pins(target)).toEqual(['1']);
    expect(await memoryOf(target)).toBe(noise);
  });
});
