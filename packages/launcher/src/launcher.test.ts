import { unwrap, vmiRequest } from '@virtwire/shared-proto';
import { parseDomainJson, renderVmiJson } from '@virtwire/vm-model';
import { expect, test } from 'vitest';
import { createFakeClock } from './testing/fake-clock.ts';
import { createVmi, eventually, startLauncherOnFake } from './testing/launcher-on-fake.ts';
import type { LauncherOnFake } from './testing/launcher-on-fake.ts';

const READS: ReadonlySet<string> = new Set([
  ...['DOMAIN_LOOKUP_BY_NAME', 'DOMAIN_GET_STATE', 'DOMAIN_GET_XML_DESC', 'CONNECT_LIST_ALL_DOMAINS'],
]);

async function startRunning(flags: readonly string[] = []): Promise<LauncherOnFake> {
  const launcher = await startLauncherOnFake(flags);
  launcher.startQemu();
  unwrap(await launcher.client.syncVirtualMachine(launcher.request));
  await eventually('Running', () => launcher.events.some(({ domain }) => domain.Status.Status === 'Running'));
  return launcher;
}

const statuses = (launcher: LauncherOnFake): string[] =>
  launcher.events.map(({ type, domain }) => `${type} ${domain.Status.Status ?? ''} ${domain.Status.Reason ?? ''}`);

/** Events of libvirt that have arrived; each becomes one message. */
const countArrivals = (launcher: LauncherOnFake): number =>
  launcher.lines.filter(({ msg }) => String(msg).endsWith(' received')).length;

test('a whole life: ready, defined, started, QEMU gone, deleted, ended', async () => {
  await using launcher = await startLauncherOnFake();
  const { client, daemon, domainName } = launcher;
  const qemu = launcher.startQemu();
  expect(unwrap(await client.getDomain()).domain).toBe('');
  unwrap(await client.syncVirtualMachine(launcher.request));
  await eventually('Running', () => statuses(launcher).at(-1) === 'MODIFIED Running Unknown');
  expect(statuses(launcher)[0]).toMatch(/^ADDED /);
  const document = parseDomainJson(unwrap(await client.getDomain()).domain);
  expect(document.Spec.Metadata.KubeVirt.UID).toBe(launcher.vmi.metadata.uid);
  daemon.domain(domainName).killQemu();
  qemu.kill('SIGKILL');
  await eventually('the crash', () => statuses(launcher).at(-1)?.startsWith('MODIFIED Shutoff'));
  unwrap(await client.deleteVirtualMachine(launcher.request));
  await launcher.ended;
  expect(launcher.events.at(-1)?.domain.ObjectMeta.deletionTimestamp).toBeDefined();
  expect(statuses(launcher).at(-1)).toBe('MODIFIED NoState NonExistent');
  expect(launcher.lines.map(({ msg }) => msg)).toEqual(
    expect.arrayContaining(['Marked as ready', 'Domain defined.', 'Domain started.', 'Synced vmi', 'Exiting...']),
  );
});

test('FM-9.8 repeated syncs of a running VM only read, and tell nobody anything', async () => {
  await using launcher = await startRunning();
  const { client, daemon } = launcher;
  await eventually('the events of the start', () => launcher.events.length >= countArrivals(launcher));
  unwrap(await client.syncVirtualMachine(launcher.request));
  const events = launcher.events.length;
  const calls = daemon.calls.length;
  for (let i = 0; i < 200; i++) unwrap(await client.syncVirtualMachine(launcher.request));
  const made = daemon.calls.slice(calls).map(({ procedure }) => procedure);
  expect(made.filter((procedure) => !READS.has(procedure))).toEqual([]);
  expect(launcher.events.length).toBe(events);
});

test('answers questions while a sync waits for a slow libvirt', async () => {
  await using launcher = await startLauncherOnFake();
  const { client, daemon } = launcher;
  launcher.startQemu();
  daemon.faults.add({ kind: 'slow', delayMs: 1_500 }, { procedure: 'DOMAIN_CREATE_WITH_FLAGS' });
  let isSynced = false;
  const syncing = client.syncVirtualMachine(launcher.request).then((result) => {
    isSynced = true;
    return result;
  });
  await eventually('the start', () => daemon.callsOf('DOMAIN_CREATE_WITH_FLAGS').length === 1);
  expect((await client.ping()).ok).toBe(true);
  expect((await client.getGuestInfo()).ok).toBe(true);
  expect(isSynced).toBe(false);
  unwrap(await syncing);
});

test('syncs, pauses and shutdowns wait for each other', async () => {
  await using launcher = await startRunning();
  const { client, daemon } = launcher;
  daemon.faults.add({ kind: 'slow', delayMs: 300 }, { procedure: 'DOMAIN_SUSPEND' });
  const pausing = client.pauseVirtualMachine(launcher.request);
  await eventually('the pause', () => daemon.callsOf('DOMAIN_SUSPEND').length === 1);
  const unpausing = client.unpauseVirtualMachine(launcher.request);
  unwrap(await pausing);
  unwrap(await unpausing);
  const order = daemon.calls
    .map(({ procedure }) => procedure)
    .filter((p) => p === 'DOMAIN_SUSPEND' || p === 'DOMAIN_RESUME');
  expect(order).toEqual(['DOMAIN_SUSPEND', 'DOMAIN_RESUME']);
});

test('FM-2.6 a lost connection is restored with all registrations, and the domain is told again', async () => {
  await using launcher = await startRunning();
  const { daemon, domainName } = launcher;
  const registered = daemon.callsOf('CONNECT_DOMAIN_EVENT_CALLBACK_REGISTER_ANY').length;
  await eventually('the start', () => launcher.lines.some(({ msg }) => String(msg).includes('detail="booted"')));
  await eventually('the events of the start', () => launcher.events.length >= countArrivals(launcher));
  const eventsBefore = launcher.events.length;
  await daemon.crash();
  await daemon.start();
  await eventually('the reconnect', () =>
    launcher.lines.some(({ msg }) => String(msg).startsWith('Libvirt reconnected, domain ns1_vm1')),
  );
  await eventually('the domain', () => launcher.events.length > eventsBefore);
  expect(daemon.callsOf('CONNECT_DOMAIN_EVENT_CALLBACK_REGISTER_ANY').length).toBe(2 * registered);
  expect(launcher.events.at(-1)).toMatchObject({ type: 'MODIFIED', domain: { Status: { Status: 'Running' } } });
  expect(launcher.events.every(({ type }) => type !== 'ERROR')).toBe(true);
  daemon.domain(domainName).suspend();
  await eventually('events go on', () => launcher.events.some(({ domain }) => domain.Status.Status === 'Paused'));
});

test('a shutdown that comes when the guest has just turned itself off is no failure', async () => {
  await using launcher = await startRunning();
  const { client, daemon, domainName } = launcher;
  daemon.faults.add({ kind: 'slow', delayMs: 150 }, { procedure: 'DOMAIN_SHUTDOWN_FLAGS' });
  const asking = client.shutdownVirtualMachine(launcher.request);
  await eventually('the request', () => daemon.callsOf('DOMAIN_SHUTDOWN_FLAGS').length === 1);
  daemon.domain(domainName).powerOffFromGuest();
  unwrap(await asking);
});

test('FM-4.9 a graceful shutdown is left to the default method of the hypervisor', async () => {
  await using launcher = await startRunning();
  unwrap(await launcher.client.shutdownVirtualMachine(launcher.request));
  expect(launcher.daemon.callsOf('DOMAIN_SHUTDOWN_FLAGS').map(({ args }) => args)).toEqual([
    expect.objectContaining({ flags: 0 }),
  ]);
});

test('FM-6.7 a disk that is not there yet is answered at once, so that the handler may try again', async () => {
  await using launcher = await startLauncherOnFake();
  const vmi = createVmi();
  vmi.spec.domain.devices.disks = [{ name: 'root', disk: { bus: 'virtio' } }];
  vmi.spec.volumes = [{ name: 'root', containerDisk: { image: 'some/image' } }];
  const request = vmiRequest(renderVmiJson(vmi));
  for (let tries = 0; tries < 3; tries++) {
    const failed = await launcher.client.syncVirtualMachine(request);
    expect(failed.ok ? '' : failed.error.detail).toMatch(/container-disks\/disk_0\.img.*no such file or directory/);
  }
  expect(launcher.daemon.callsOf('DOMAIN_DEFINE_XML_FLAGS')).toEqual([]);
});

test('an error of libvirt reaches the handler in the form that it knows', async () => {
  await using launcher = await startLauncherOnFake();
  const { client, daemon } = launcher;
  daemon.faults.add(
    { kind: 'error', code: 27, domain: 20, message: 'XML error: bad' },
    { procedure: 'DOMAIN_DEFINE_XML_FLAGS' },
  );
  const failed = await client.syncVirtualMachine(launcher.request);
  expect(failed.ok ? '' : failed.error.detail).toBe("LibvirtError(Code=27, Domain=20, Message='XML error: bad')");
  launcher.startQemu();
  unwrap(await client.syncVirtualMachine(launcher.request));
});

test('requests that crash a launcher written in Go get an answer', async () => {
  await using launcher = await startLauncherOnFake();
  const { client } = launcher;
  const failures = [
    await client.syncVirtualMachine({}),
    await client.syncVirtualMachine({ vmi: { vmiJson: Buffer.from('{') } }),
    await client.syncVirtualMachine({ vmi: { vmiJson: Buffer.from('[]') } }),
    await client.pauseVirtualMachine({ vmi: { vmiJson: Buffer.from('null') } }),
  ];
  for (const result of failures) {
    expect(result.ok ? '' : result.error.detail).toBe('No valid vmi object present in command server request');
  }
  const deep = `{"spec":${'{"domain":'.repeat(5_000)}${'}'.repeat(5_000)}}`;
  expect((await client.syncVirtualMachine({ vmi: { vmiJson: Buffer.from(deep) } })).ok).toBe(false);
  expect((await client.exec({ domainName: 'x', timeoutSeconds: 0 })).ok).toBe(false);
  expect((await client.finalizeVirtualMachineMigration({ vmi: launcher.request.vmi })).ok).toBe(true);
  expect((await client.ping()).ok).toBe(true);
});

test('FM-9.6 the agent poller follows connect, disconnect, suspend and resume', async () => {
  await using launcher = await startRunning();
  const { daemon, domainName } = launcher;
  const domain = daemon.domain(domainName);
  const asked = (): number => daemon.callsOf('DOMAIN_GET_GUEST_INFO').length;
  domain.suspend();
  domain.resume();
  await eventually('events', () => launcher.lines.some(({ msg }) => String(msg).includes('detail="unpaused"')));
  expect(asked()).toBe(0);
  domain.connectAgent();
  await eventually('questions', () => asked() >= 3);
  domain.suspend();
  await eventually('rest', () => launcher.lines.some(({ msg }) => String(msg).endsWith('due to domain suspend')));
  const before = asked();
  domain.resume();
  await eventually('questions again', () => asked() > before);
  domain.disconnectAgent();
  await eventually('rest', () => launcher.lines.some(({ msg }) => String(msg).endsWith('due to agent disconnect')));
  expect(launcher.lines.filter(({ level, subcomponent }) => level === 'error' && subcomponent === undefined)).toEqual(
    [],
  );
});

test('FM-2.11 without a handler the final event is not waited for beyond its limit', async () => {
  await using launcher = await startLauncherOnFake(['--grace-period-seconds', '0']);
  launcher.terminate();
  await launcher.ended;
  expect(launcher.lines.at(-1)?.['msg']).toBe('Exiting...');
});

test('FM-2.11 a launcher that nobody hears exits 45 s after its VM was deleted, however short the VM lived', async () => {
  const clock = createFakeClock(Date.now());
  await using launcher = await startLauncherOnFake([], {}, {}, { clock, hasHandler: false });
  const { client, request } = launcher;
  unwrap(await client.syncVirtualMachine(request));
  unwrap(await client.killVirtualMachine(request));
  unwrap(await client.deleteVirtualMachine(request));
  const said = (): string[] => launcher.lines.map(({ msg }) => String(msg));
  await eventually('word of the end', () => said().some((msg) => msg.includes('event="undefined"')));
  const deletedAtMs = clock.now();
  await clock.until(launcher.ended);
  expect(clock.now() - deletedAtMs).toBeLessThan(50_000);
  expect(said()).toContain('Timed out waiting for final delete notification after calling kill.');
  expect(said().at(-1)).toBe('Exiting...');
});

test('a VMI in the environment is started without a handler, and served like any other', async () => {
  const env = { STANDALONE_VMI: renderVmiJson(createVmi()) };
  await using launcher = await startLauncherOnFake([], env);
  launcher.startQemu();
  await eventually('Running', () => statuses(launcher).at(-1) === 'MODIFIED Running Unknown');
  expect(launcher.lines.find(({ msg }) => msg === 'Standalone mode: syncing VMI')).toMatchObject({ name: 'vm1' });
  expect(parseDomainJson(unwrap(await launcher.client.getDomain()).domain).Status.Status).toBe('Running');
});
