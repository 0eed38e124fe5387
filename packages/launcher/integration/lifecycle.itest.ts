import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { unwrap } from '@virtwire/shared-proto';
import type { CmdClient } from '@virtwire/shared-proto';
import { parseDomainJson } from '@virtwire/vm-model';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createVmi, requestOf } from './support/guest.ts';
import type { LauncherPod } from './support/sandbox.ts';
import { eventually, startLauncherPod } from './support/sandbox.ts';

const UID = '7a1b2c3d-0000-4000-8000-000000000001';
const FLAGS = ['--name', 'vm1', '--namespace', 'default', '--uid', UID, '--qemu-timeout', '120s'];
const vmi = createVmi({ name: 'vm1', uid: UID });

describe('one VM from the launcher to its end, on real libvirt and QEMU', { timeout: 240_000 }, () => {
  let pod: LauncherPod;
  let client: CmdClient;
  const started: { pod?: LauncherPod; client?: CmdClient } = {};

  beforeAll(async () => {
    pod = await startLauncherPod(FLAGS);
    started.pod = pod;
    await pod.ear.open();
    await pod.waitUntilReady();
    client = await pod.connect();
    started.client = client;
  }, 120_000);

  afterAll(async () => {
    started.client?.close();
    await started.pod?.[Symbol.asyncDispose]();
  });

  test('is ready under the name that handlers look for, and says so', async () => {
    await pod.waitForLog('Marked as ready');
    expect(existsSync(join(pod.shareDir, 'sockets/launcher-init-sock'))).toBe(false);
    expect(unwrap(await client.ping()).success).toBe(true);
  });

  test('answers every question before there is a domain', async () => {
    expect(unwrap(await client.getDomain()).domain).toBe('');
    const stats = await client.getDomainStats();
    expect(stats.ok ? '' : stats.error.detail).toBe('empty DomainStats');
    expect(unwrap(await client.getQemuVersion()).version).toMatch(/^QEMU \d+\.\d+\.\d+$/);
    expect(unwrap(await client.getGuestInfo()).guestInfoResponse).toBe(
      '{"os":{},"timezone":", 0","fsInfo":{"disks":null}}',
    );
    expect(unwrap(await client.getUsers()).guestUserListResponse).toBe('[]');
    expect(unwrap(await client.getFilesystems()).guestFilesystemsResponse).toBe('[]');
    const pause = await client.pauseVirtualMachine(requestOf(vmi));
    expect(pause.ok ? '' : pause.error.detail).toBe('Domain not found.');
    expect((await client.shutdownVirtualMachine(requestOf(vmi))).ok).toBe(true);
    expect((await client.killVirtualMachine(requestOf(vmi))).ok).toBe(true);
  });

  test('statistics of a launcher that does not collect them are refused', async () => {
    const stats = await client.getVMStats();
    expect(stats.ok ? '' : stats.error.detail).toContain('VMStatsCollector feature gate is not enabled');
  });

  test('defines and starts the domain, and tells the handler in order', async () => {
    unwrap(await client.syncVirtualMachine(requestOf(vmi)));
    const { domain } = await pod.ear.hear('Running', (e) => e.domain.Status.Status === 'Running');
    expect(domain.ObjectMeta).toMatchObject({ namespace: 'default', name: 'vm1', uid: UID });
    expect(domain.Spec.Metadata.KubeVirt).toMatchObject({ UID, GracePeriod: { DeletionGracePeriodSeconds: 30 } });
    expect(pod.ear.domains[0]?.type).toBe('ADDED');
    expect(pod.ear.domains[0]?.domain.Status.Status).toBe('Shutoff');
    for (const msg of ['Domain defined.', 'Domain started.', 'Synced vmi']) {
      expect(await pod.waitForLog(msg)).toMatchObject({ namespace: 'default', name: 'vm1', uid: UID });
    }
  });

  test('repeated syncs change nothing', async () => {
    const defined = pod.logs.filter(({ msg }) => msg === 'Domain defined.').length;
    await pod.waitForLog(/detail="booted"/);
    const arrived = (): number => pod.logs.filter(({ msg }) => /event.* received$/.test(String(msg))).length;
    await eventually('all events of the start', () => pod.ear.domains.length === arrived());
    const events = pod.ear.domains.length;
    const running = { ...vmi, status: { ...vmi.status, phase: 'Running' as const } };
    for (let i = 0; i < 20; i++) unwrap(await client.syncVirtualMachine(requestOf(running)));
    expect(pod.logs.filter(({ msg }) => msg === 'Domain defined.').length).toBe(defined);
    expect(pod.ear.domains.length).toBe(events);
  });

  test('describes the running domain', async () => {
    const domain = parseDomainJson(unwrap(await client.getDomain()).domain);
    expect(domain.Status).toMatchObject({ Status: 'Running', Reason: 'Unknown' });
    expect(domain.Spec.Name).toBe('default_vm1');
    const stats = JSON.parse(unwrap(await client.getDomainStats()).domainStats) as Record<string, never>;
    expect(stats).toMatchObject({ Name: 'default_vm1', Cpu: { TimeSet: true }, CPUMapSet: true });
    const ping = await client.guestPing({ domainName: 'default_vm1', timeoutSeconds: 1 });
    expect(ping.ok ? '' : ping.error.detail).toContain('virError(Code=86');
    await eventually('the probe event', () => pod.ear.k8sEvents.find((e) => e.reason === 'GuestAgentPingFailed'));
  });

  test('a round without host devices to plug in changes nothing', async () => {
    const before = unwrap(await client.getDomain()).domain;
    unwrap(await client.hotplugHostDevices(requestOf(vmi)));
    expect(unwrap(await client.getDomain()).domain).toBe(before);
  });

  test('pauses and goes on; a sync does not end a pause that was asked for', async () => {
    unwrap(await client.pauseVirtualMachine(requestOf(vmi)));
    await pod.ear.hear('Paused', ({ domain: { Status } }) => Status.Status === 'Paused' && Status.Reason === 'User');
    unwrap(await client.pauseVirtualMachine(requestOf(vmi)));
    unwrap(await client.syncVirtualMachine(requestOf({ ...vmi, status: { ...vmi.status, phase: 'Running' } })));
    expect(parseDomainJson(unwrap(await client.getDomain()).domain).Status.Status).toBe('Paused');
    unwrap(await client.unpauseVirtualMachine(requestOf(vmi)));
    expect(parseDomainJson(unwrap(await client.getDomain()).domain).Status.Status).toBe('Running');
    unwrap(await client.unpauseVirtualMachine(requestOf(vmi)));
  });

  test('a shutdown that the guest ignores stamps the time once; kill ends it, delete ends the launcher', async () => {
    unwrap(await client.shutdownVirtualMachine(requestOf(vmi)));
    const marked = await pod.ear.hear(
      'the deletion time',
      (e) => e.domain.Spec.Metadata.KubeVirt.GracePeriod?.DeletionTimestamp !== undefined,
    );
    expect(marked.domain.Status.Status).toBe('Running');
    unwrap(await client.shutdownVirtualMachine(requestOf(vmi)));
    unwrap(await client.killVirtualMachine(requestOf(vmi)));
    const off = await pod.ear.hear('Shutoff', ({ domain: { Status } }) => Status.Reason === 'Destroyed');
    expect(off.domain.Spec.Metadata.KubeVirt.GracePeriod?.DeletionTimestamp).toBe(
      marked.domain.Spec.Metadata.KubeVirt.GracePeriod?.DeletionTimestamp,
    );
    unwrap(await client.deleteVirtualMachine(requestOf(vmi)));
    const last = await pod.ear.hear('the final event', (e) => e.domain.ObjectMeta.deletionTimestamp !== undefined);
    expect(last).toMatchObject({ type: 'MODIFIED', domain: { Status: { Status: 'NoState', Reason: 'NonExistent' } } });
    expect(await pod.exited).toBe(0);
    expect(pod.output()).toContain('Exiting...');
  });
});
