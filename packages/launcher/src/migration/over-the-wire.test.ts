import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { unwrap, vmiRequest } from '@virtwire/shared-proto';
import { renderVmiJson } from '@virtwire/vm-model';
import type { Vmi } from '@virtwire/vm-model';
import { expect, test } from 'vitest';
import type { LauncherOnFake } from '../testing/launcher-on-fake.ts';
import { eventually, startLauncherOnFake } from '../testing/launcher-on-fake.ts';

const OPTIONS = { Bandwidth: '64Mi', ProgressTimeout: 150, CompletionTimeoutPerGiB: 150, ParallelMigrationThreads: 2 };

async function startRunning(): Promise<LauncherOnFake> {
  const launcher = await startLauncherOnFake([], {}, { jobDurationMs: 'untilLever' });
  launcher.startQemu();
  unwrap(await launcher.client.syncVirtualMachine(launcher.request));
  await eventually('Running', () => launcher.events.some(({ domain }) => domain.Status.Status === 'Running'));
  return launcher;
}

function migrating(vmi: Vmi, migrationUid: string): ReturnType<typeof vmiRequest> {
  const migrationState = { migrationUid, targetPod: 'target' };
  return vmiRequest(renderVmiJson({ ...vmi, status: { ...vmi.status, phase: 'Running', migrationState } }));
}

async function migrate(launcher: LauncherOnFake, migrationUid: string): Promise<void> {
  const { vmi } = migrating(launcher.vmi, migrationUid);
  unwrap(await launcher.client.migrateVirtualMachine({ vmi, options: Buffer.from(JSON.stringify(OPTIONS)) }));
  await eventually('a job', () => launcher.daemon.domain(launcher.domainName).job !== undefined);
}

const endOf = ({ events }: LauncherOnFake, migrationUid: string) =>
  eventually('the end of the migration', () =>
    events
      .map(({ domain }) => domain.Spec.Metadata.KubeVirt.Migration)
      .find((migration) => migration?.UID === migrationUid && migration.EndTimestamp !== undefined),
  );

test('FM-8.4 the handler hears the result of a migration before it hears that the domain is gone', async () => {
  await using launcher = await startRunning();
  const { client, daemon, domainName, events, request } = launcher;
  await migrate(launcher, 'mig-1');
  const call = daemon.callsOf('DOMAIN_MIGRATE_PERFORM3_PARAMS').at(-1);
  expect(JSON.stringify(call, (_key, value: unknown) => (typeof value === 'bigint' ? Number(value) : value))).toMatch(
    /"field":"bandwidth","type":"ullong","value":64/,
  );
  daemon.domain(domainName).job?.complete();
  expect(await endOf(launcher, 'mig-1')).toMatchObject({ Mode: 'PreCopy', Completed: true });
  await eventually('its departure', () => events.some(({ domain }) => domain.Status.Reason === 'Migrated'));
  unwrap(await client.deleteVirtualMachine(request));
  const isGone = (event: (typeof events)[number]): boolean => event.domain.ObjectMeta.deletionTimestamp !== undefined;
  await eventually('the deletion', () => events.some(isGone));
  const isOver = ({ domain }: (typeof events)[number]): boolean =>
    domain.Spec.Metadata.KubeVirt.Migration?.EndTimestamp !== undefined;
  expect(events.findIndex(isOver)).toBeLessThan(events.findIndex(isGone));
});

test.each([
  ['a guest that left while libvirt was away has migrated', 'leaves', false],
  ['a guest that is still there when libvirt is back has not', 'stays', true],
] as const)('FM-8.4 %s', async (_title, outcome, isFailed) => {
  await using launcher = await startRunning();
  const { daemon, domainName } = launcher;
  await migrate(launcher, 'mig-1');
  const { job } = daemon.domain(domainName);
  await daemon.crash();
  if (outcome === 'leaves') job?.complete();
  else job?.fail('operation failed');
  await daemon.start();
  expect((await endOf(launcher, 'mig-1')).Failed ?? false).toBe(isFailed);
});

test('a migration that is cancelled over the wire leaves the VM, and another one can follow', async () => {
  await using launcher = await startRunning();
  const { client, daemon, domainName, vmi } = launcher;
  await migrate(launcher, 'mig-1');
  unwrap(await client.cancelVirtualMachineMigration(migrating(vmi, 'mig-1')));
  expect(await endOf(launcher, 'mig-1')).toMatchObject({ Failed: true, AbortStatus: 'Succeeded' });
  expect(daemon.domain(domainName).isActive).toBe(true);
  await migrate(launcher, 'mig-2');
  daemon.domain(domainName).job?.complete();
  expect((await endOf(launcher, 'mig-2')).Failed ?? false).toBe(false);
});

test.each([
  ['', 'migration options object not present in command server request'],
  ['[', /^no valid migration options object present in command server request: /],
])('options %j are refused', async (text, message) => {
  await using launcher = await startLauncherOnFake();
  const { vmi } = migrating(launcher.vmi, 'mig-1');
  const answer = await launcher.client.migrateVirtualMachine({ vmi, options: Buffer.from(text) });
  expect(answer.ok ? '' : answer.error.detail).toMatch(message);
});

test('credentials reach the guest on the target of a migration, too', async () => {
  await using launcher = await startLauncherOnFake();
  const { client, root, vmi } = launcher;
  const userPassword = {
    source: { secret: { secretName: 'pass' } },
    propagationMethod: { qemuGuestAgent: {} },
  };
  const spec = { ...vmi.spec, accessCredentials: [{ userPassword }] };
  const arriving = { ...vmi, spec, status: { ...vmi.status, migrationTransport: 'Unix' } };
  const refused = await client.syncMigrationTarget(migrating(arriving, 'mig-1'));
  expect(refused.ok ? '' : refused.error.detail).toBe(
    'pre-start pod-setup failed: Starting qemu agent access credential propagation failed: no such file or directory',
  );
  mkdirSync(join(root, 'private/secret/pass-access-cred'), { recursive: true });
  unwrap(await client.syncMigrationTarget(migrating(arriving, 'mig-1')));
});
