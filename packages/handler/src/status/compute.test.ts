import fc from 'fast-check';
import { expect, test } from 'vitest';
import { HandlerError } from '../errors.ts';
import type { Domain, Vmi } from '../model.ts';
import { sampleDomain, sampleStatusInput, sampleVmi } from '../testing/samples.ts';
import { computeStatus, needsGuestInfo } from './compute.ts';
import { findCondition } from './conditions.ts';
import { isSemanticallyEqual } from './equal.ts';
import type { StatusInput } from './facts.ts';

const statuses = fc.constantFrom<Domain['Status']['Status'][]>(
  'Running',
  'Paused',
  'Shutoff',
  'Crashed',
  'NoState',
  'ShuttingDown',
  'Blocked',
);
const reasons = fc.constantFrom<Domain['Status']['Reason'][]>('Unknown', 'User', 'IOError', 'Shutdown', 'Destroyed');
const address = fc.constantFrom('10.0.2.2', '192.168.1.9', 'fe80::1', 'fd00::7', '169.254.3.4');

/** Any domain that a launcher might tell, with an agent or without. */
const anyDomain: fc.Arbitrary<Domain> = fc
  .record({
    status: statuses,
    reason: reasons,
    isConnected: fc.boolean(),
    agent: fc.array(
      fc.record({
        mac: fc.constantFrom('02:00:00:00:00:01', '02:00:00:00:00:09'),
        ips: fc.array(address, { maxLength: 3 }),
        name: fc.constantFrom('', 'eth0'),
      }),
      { maxLength: 3 },
    ),
    os: fc.constantFrom('', 'Debian', 'Fedora'),
    memory: fc.option(fc.integer({ min: 1, max: 1 << 20 }), { nil: undefined }),
  })
  .map(({ status, reason, isConnected, agent, os, memory }) =>
    sampleDomain(status, reason, (domain) => {
      const State = isConnected ? 'connected' : 'disconnected';
      domain.Spec.Devices.Channels = [{ Target: { Name: 'org.qemu.guest_agent.0', State } }];
      domain.Status.Interfaces = agent.map(({ mac, ips, name }) => ({
        Mac: mac,
        IPs: ips,
        Ip: ips[0] ?? '',
        InterfaceName: name,
      }));
      domain.Status.OSInfo = os === '' ? {} : { Name: os };
      if (memory !== undefined) domain.Spec.CurrentMemory = { Value: memory, Unit: 'KiB' };
    }),
  );

const anyInput: fc.Arbitrary<StatusInput> = fc
  .record({
    phase: fc.constantFrom('Scheduled' as const, 'Running' as const, 'Succeeded' as const),
    domain: fc.option(anyDomain, { nil: undefined }),
    error: fc.option(fc.constantFrom('boom', 'other'), { nil: undefined }),
    launcher: fc.constantFrom('responsive' as const, 'not-initialized' as const, 'unresponsive' as const),
  })
  .map(({ phase, domain, error, launcher }) =>
    sampleStatusInput({
      vmi: sampleVmi(phase),
      domain,
      launcher,
      syncError: error === undefined ? undefined : new Error(error),
    }),
  );

function withStatus(vmi: Vmi, status: Vmi['status']): Vmi {
  return status === undefined ? vmi : { ...vmi, status };
}

test('design 4.6 the status never flaps: computed again from the same facts, nothing changes', () => {
  fc.assert(
    fc.property(anyInput, fc.integer({ min: 0, max: 3_600_000 }), (input, laterMs) => {
      const { status } = computeStatus(input);
      const vmi = withStatus(input.vmi, status);
      const again = computeStatus({ ...input, vmi, nowMs: input.nowMs + laterMs });
      // A phase change shows in what depends on the phase one pass later, never back and forth.
      const third = computeStatus({ ...input, vmi: withStatus(vmi, again.status), nowMs: input.nowMs + 2 * laterMs });
      expect(third.status).toEqual(again.status);
      if (status.phase === input.vmi.status?.phase) expect(again.status).toEqual(status);
    }),
    { numRuns: 400 },
  );
});

test('FM-1.10 fields that nobody here knows stay as they are', () => {
  fc.assert(
    fc.property(anyInput, fc.dictionary(fc.constantFrom('futureA', 'futureB'), fc.jsonValue()), (input, extra) => {
      const vmi = withStatus(input.vmi, { ...input.vmi.status, ...extra });
      const { status } = computeStatus({ ...input, vmi });
      for (const [key, value] of Object.entries(extra)) expect(status).toHaveProperty(key, value);
    }),
  );
});

test('the input is never changed', () => {
  fc.assert(
    fc.property(anyInput, (input) => {
      const before = structuredClone(input.vmi);
      computeStatus(input);
      expect(input.vmi).toEqual(before);
    }),
  );
});

test('a final VMI is left alone', () => {
  const vmi = sampleVmi('Succeeded');
  expect(computeStatus(sampleStatusInput({ vmi, domain: undefined, syncError: new Error('x') })).status).toBe(
    vmi.status,
  );
});

test('FM-4.4 a sync error goes unchanged into Synchronized, and its message stays the first one', () => {
  const first = computeStatus(sampleStatusInput({ syncError: new Error('no disk') }));
  expect(findCondition(first.status.conditions ?? [], 'Synchronized')).toMatchObject({
    status: 'False',
    reason: 'Synchronizing with the Domain failed.',
    message: 'no disk',
  });
  const vmi = withStatus(sampleVmi('Running'), first.status);
  const second = computeStatus(sampleStatusInput({ vmi, syncError: new Error('another') }));
  expect(second.status.conditions).toEqual(first.status.conditions);
  const good = computeStatus(sampleStatusInput({ vmi }));
  expect(findCondition(good.status.conditions ?? [], 'Synchronized')).toBeUndefined();
});

test.each(['CriticalNetwork', 'SecureBootMismatch', 'Irrecoverable'] as const)('%s ends the VMI', (code) => {
  const inner = new HandlerError(code, 'inner');
  const syncError = new HandlerError('Internal', 'outer', { cause: inner });
  const { status, fatal, phaseEvents } = computeStatus(sampleStatusInput({ syncError }));
  expect(status.phase).toBe('Failed');
  expect(fatal).toContain('Updating VMI vm1 status to Failed');
  expect(phaseEvents).toEqual([{ type: 'Warning', reason: 'Stopped', message: 'The VirtualMachineInstance crashed.' }]);
});

test('FM-4.6 the pod network comes first, and every other interface is there once', () => {
  const vmi = sampleVmi('Running', (one) => {
    one.spec.networks = [
      { name: 'second', multus: { networkName: 'n' } },
      { name: 'default', pod: {} },
    ];
    one.spec.domain.devices.interfaces = [
      { name: 'second', bridge: {} },
      { name: 'default', masquerade: {} },
    ];
  });
  const domain = sampleDomain('Running', 'Unknown', (one) => {
    one.Spec.Devices.Interfaces = [
      { Alias: { Name: 'second' }, MAC: { MAC: '02:00:00:00:00:02' } },
      { Alias: { Name: 'default' }, MAC: { MAC: '02:00:00:00:00:01' } },
    ];
  });
  const { status } = computeStatus(sampleStatusInput({ vmi, domain }));
  expect(status.interfaces?.map((iface) => iface.name)).toEqual(['default', 'second']);
  const again = computeStatus(sampleStatusInput({ vmi: withStatus(vmi, status), domain }));
  expect(isSemanticallyEqual(again.status, status)).toBe(true);
});

test('FM-2.10 a pause at the end of a migration is no condition', () => {
  const domain = sampleDomain('Paused', 'Migration');
  const { status } = computeStatus(sampleStatusInput({ domain }));
  expect(findCondition(status.conditions ?? [], 'Paused')).toBeUndefined();
});

test('the agent of a domain that is off is not asked', () => {
  const connected = (domain: Domain): void => {
    domain.Spec.Devices.Channels = [{ Target: { Name: 'org.qemu.guest_agent.0', State: 'connected' } }];
  };
  expect(needsGuestInfo({ domain: sampleDomain('Running', 'Unknown', connected) })).toBe(true);
  expect(needsGuestInfo({ domain: sampleDomain('Shutoff', 'Shutdown', connected) })).toBe(false);
  expect(needsGuestInfo({ domain: undefined })).toBe(false);
});

test('FM-5.8 a domain with hardly any content is no crash', () => {
  const domain = sampleDomain('Running', 'Unknown', (one) => {
    one.Spec.Devices = { Interfaces: [{}], Disks: [{}], HostDevices: [{}], Channels: [{}] };
  });
  expect(computeStatus(sampleStatusInput({ domain })).status.phase).toBe('Running');
});
