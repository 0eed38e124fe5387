import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { unwrap } from '@virtwire/shared-proto';
import { expect, test } from 'vitest';
import { createVmi, requestOf } from './support/guest.ts';
import { eventually, startLauncherPod } from './support/sandbox.ts';

const UID = '7a1b2c3d-0000-4000-8000-000000000004';

test('as root the VM runs on the system instance, its QEMU as the user qemu', { timeout: 240_000 }, async () => {
  const flags = ['--name', 'vm1', '--namespace', 'default', '--uid', UID];
  await using pod = await startLauncherPod(flags, { asRoot: true });
  await pod.ear.open();
  await pod.waitUntilReady();
  await pod.waitForLog(/^Connecting to libvirt daemon: qemu\+unix:\/\/\/system/);
  expect(statSync(join(pod.root, 'kubevirt-private', UID, 'virt-serial0-log')).uid).toBe(107);
  using client = await pod.connect();
  const vmi = createVmi({ name: 'vm1', uid: UID });
  unwrap(await client.syncVirtualMachine(requestOf(vmi)));
  await pod.ear.hear('Running', (e) => e.domain.Status.Status === 'Running');
  await pod.waitForLog(/^Found PID for default_vm1: \d+$/);
  const qemu = await eventually('QEMU', () => pod.qemuPid());
  expect(/^Uid:\s+(\d+)/m.exec(readFileSync(`/proc/${qemu}/status`, 'utf8'))?.[1]).toBe('107');
  unwrap(await client.killVirtualMachine(requestOf(vmi)));
  await pod.ear.hear('Destroyed', (e) => e.domain.Status.Reason === 'Destroyed');
  unwrap(await client.deleteVirtualMachine(requestOf(vmi)));
  expect(await pod.exited).toBe(0);
});
