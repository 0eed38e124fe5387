import type { Vmi } from '@virtwire/vm-model';
import { expect, test } from 'vitest';
import { launcherCommand } from './launcher-command.ts';
import { admitVmi, deleting, handOver, scheduling } from './vmi-changes.ts';

const NOW = new Date('2026-01-02T03:04:05Z');
const manifest: Vmi = {
  metadata: { name: 'vm1', namespace: 'ns1', uid: '' },
  spec: {
    terminationGracePeriodSeconds: 7,
    domain: {
      memory: { guest: '64Mi' },
      devices: {
        disks: [{ name: 'root', disk: { bus: 'virtio' } }],
        interfaces: [{ name: 'default', masquerade: {} }],
      },
    },
    networks: [{ name: 'default', pod: {} }],
    volumes: [
      { name: 'root', containerDisk: { image: 'x' } },
      { name: 'extra', emptyDisk: { capacity: '1Mi' } },
    ],
  },
};
const program = { command: ['/usr/lib/virtwire/.cache/launcher/virt-launcher'] };
const admitted = admitVmi(manifest, NOW, 'amd64');

test('the launcher gets the command line of a pod, with the padding of the grace period', () => {
  const { args, env, user } = launcherCommand(admitted, program, { kvmWorks: false });
  expect(args.slice(0, 2)).toEqual(['/usr/lib/virtwire/.cache/launcher/virt-launcher', '--qemu-timeout']);
  expect(args.join(' ')).toContain('--grace-period-seconds 22');
  expect(args).toEqual(expect.arrayContaining(['--run-as-nonroot', '--image-volume', '--allow-emulation']));
  expect(env).toContain('XDG_RUNTIME_DIR=/var/run');
  expect(user).toBe(107);
});

test('below a monitor there are no sidecars to look for', () => {
  const monitored = { command: ['/usr/lib/virtwire/.cache/native/virt-launcher-monitor'], script: '#!/bin/sh' };
  const { args, env } = launcherCommand(admitted, monitored, { kvmWorks: false });
  expect(args[0]).toBe('/usr/lib/virtwire/.cache/native/virt-launcher-monitor');
  expect(env).toContain('VIRT_LAUNCHER_NO_SIDECARS=1');
  expect(launcherCommand(admitted, program, { kvmWorks: false }).env).not.toContain('VIRT_LAUNCHER_NO_SIDECARS=1');
});

test('with KVM no emulation is allowed', () => {
  expect(launcherCommand(admitted, program, { kvmWorks: true }).args).not.toContain('--allow-emulation');
});

test('a manifest is completed as the admission webhook would', () => {
  expect(admitted.metadata.uid).toMatch(/^[0-9a-f-]{36}$/);
  expect(admitted.metadata.finalizers).toContain('kubevirt.io/foregroundDeleteVirtualMachine');
  expect(admitted.spec.domain.machine?.type).toBe('q35');
  expect(admitted.status).toMatchObject({ phase: 'Pending', runtimeUser: 107 });
});

test('the hand-over writes what the handler relies on', () => {
  const scheduled = scheduling(admitted, 'pod-1', NOW);
  const { metadata, status } = handOver(scheduled, { podUid: 'pod-1', node: 'n1', image: 'i' }, NOW);
  expect(metadata.labels).toEqual({ 'kubevirt.io/nodeName': 'n1' });
  expect(status).toMatchObject({
    ...{ phase: 'Scheduled', nodeName: 'n1', activePods: { 'pod-1': 'n1' }, migrationTransport: 'Unix' },
    volumeStatus: [
      { name: 'extra', target: '' },
      { name: 'root', target: '' },
    ],
    interfaces: [{ name: 'default', podInterfaceName: 'eth0' }],
    conditions: [{ type: 'Ready', status: 'False', reason: 'GuestNotRunning' }],
  });
  expect(status?.phaseTransitionTimestamps?.map((t) => t.phase)).toEqual(['Pending', 'Scheduling', 'Scheduled']);
});

test('by force the guest gets no time', () => {
  expect(deleting(admitted, NOW, { force: true }).spec.terminationGracePeriodSeconds).toBe(0);
  expect(deleting(admitted, NOW, { force: false }).spec.terminationGracePeriodSeconds).toBe(7);
});
