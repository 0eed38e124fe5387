import { expect, test } from 'vitest';
import { readCases } from '../testing/bundle.ts';
import { createDiskWorld } from '../testing/disk-world.ts';
import { runVector } from '../testing/run-vector.ts';
import type { VectorResult } from '../testing/run-vector.ts';
import type { PreparedInput } from '../testing/vector-preparation.ts';
import { createVectorPreparation } from '../testing/vector-preparation.ts';

const cases = readCases<PreparedInput, unknown>('launcher-sync');
const REFUSED = { error: { code: 38, domain: 10, message: 'refused' } };

/** Plays a recorded case with something changed in it. */
async function play(name: string, change: Partial<PreparedInput>): Promise<VectorResult> {
  const recorded = cases.find((c) => c.name.endsWith(`-${name}`));
  if (recorded === undefined) throw new Error(`no case ${name}`);
  const input = { ...recorded.input, ...change };
  using world = createDiskWorld({ ...input, hasDirectIo: true });
  return await runVector(input, createVectorPreparation(world, input), world);
}

const calls = ({ steps }: VectorResult): readonly unknown[] =>
  steps.flatMap(({ trace }) => trace.flatMap(({ libvirt }) => (libvirt === undefined ? [] : [libvirt])));

test.each([
  ['no JSON', 'nonsense', `invalid character 'o' in literal null (expecting 'u')`],
  ['a list', '[]', 'json: cannot unmarshal array into Go value of type agent.execReturn'],
  [
    'a text for a record',
    '{"return":"x"}',
    'json: cannot unmarshal string into Go struct field execReturn.return of type agent.execReturnData',
  ],
  [
    'a text for a number',
    '{"return":{"pid":"x"}}',
    'json: cannot unmarshal string into Go struct field execReturnData.return.pid of type int',
  ],
  [
    'half a process',
    '{"return":{"pid":1.5}}',
    'json: cannot unmarshal number 1.5 into Go struct field execReturnData.return.pid of type int',
  ],
  [
    'no process',
    '{"return":{}}',
    'Invalid pid [0] returned from qemu agent during access credential injection: {"return":{}}',
  ],
])('a guest command whose agent answers with %s fails in the known words', async (_what, reply, message) => {
  const { steps } = await play('exec-exit-code', { agent: { 'guest-exec': [{ reply }] } });
  expect(steps.map(({ error }) => error)).toEqual([message]);
});

test('a guest command whose status is misshapen does not wait for its time to run out', async () => {
  const status = [{ reply: '{"return":{"exited":"yes"}}' }];
  const agent = { 'guest-exec': [{ reply: '{"return":{"pid":7}}' }], 'guest-exec-status': status };
  const { steps } = await play('exec-exit-code', { agent });
  expect(steps.map(({ error }) => error)).toEqual([
    'json: cannot unmarshal string into Go struct field execStatusReturnData.return.exited of type bool',
  ]);
});

test('a probe of a domain that cannot be looked up after its silence fails', async () => {
  const { steps } = await play('ping-fails-running', { answers: { LookupDomainByName: [{}, REFUSED] } });
  expect(steps[0]?.error).toContain('Code=86');
  expect(steps[0]?.trace.some(({ notify }) => notify === 'HandleK8sEvent')).toBe(true);
});

test('a sync whose last look at the domain fails has done its work and keeps the names of devices', async () => {
  const result = await play('cdrom-insert-block', { answers: { GetXMLDesc: [{}, REFUSED] } });
  expect(result.steps.map(({ error }) => error)).toEqual([undefined]);
  expect(calls(result)).toContain('UpdateDeviceFlags');
  expect(result.aliases).toEqual({});
});

test('a directory in place of a disk is not attached', async () => {
  const files = { '/var/run/kubevirt/hotplug-disks/aa.img': { dir: true } };
  const result = await play('attach-scsi-file', { files });
  expect(result.steps.map(({ error }) => error)).toEqual([undefined]);
  expect(calls(result)).not.toContain('AttachDeviceFlags');
});

test('a frozen number of interface slots that is no number is refused under its name', async () => {
  const recorded = cases.find((c) => c.name.endsWith('-define-slot-count'))?.input.vmi;
  const annotations = { 'kubevirt.io/pci-interface-slot-count': 'many' };
  const vmi = { ...recorded, metadata: { ...recorded?.metadata, annotations } } as PreparedInput['vmi'];
  const { steps } = await play('define-slot-count', { vmi });
  const cause = 'strconv.Atoi: parsing "many": invalid syntax';
  expect(steps[0]?.error).toBe(`invalid kubevirt.io/pci-interface-slot-count annotation value "many": ${cause}`);
});
