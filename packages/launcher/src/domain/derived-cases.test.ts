import type { Vmi } from '@virtwire/vm-model';
import { expect, test } from 'vitest';
import { readCases } from '../testing/bundle.ts';
import { createDiskWorld } from '../testing/disk-world.ts';
import { runVector } from '../testing/run-vector.ts';
import type { VectorResult } from '../testing/run-vector.ts';
import type { PreparedInput } from '../testing/vector-preparation.ts';
import { createVectorPreparation } from '../testing/vector-preparation.ts';

const cases = readCases<PreparedInput, unknown>('launcher-sync');
const seeds = readCases<PreparedInput, unknown>('launcher-cloudinit');
const migrations = readCases<PreparedInput, unknown>('launcher-migration');
const REFUSED = { error: { code: 38, domain: 10, message: 'refused' } };

/** Plays a recorded case with something changed in it. */
async function play(
  name: string,
  change: Partial<PreparedInput>,
): Promise<VectorResult & { readonly made: readonly string[] }> {
  const recorded = [...cases, ...seeds, ...migrations].find((c) => c.name.endsWith(`-${name}`));
  if (recorded === undefined) throw new Error(`no case ${name}`);
  const input = { ...recorded.input, ...change };
  using world = createDiskWorld({ ...input, hasDirectIo: true });
  const result = await runVector(input, createVectorPreparation(world, input), world);
  return { ...result, made: world.runs.map(({ exec }) => exec) };
}

const calls = ({ steps }: Pick<VectorResult, 'steps'>): readonly unknown[] =>
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

test('a migration of a domain whose state cannot be read says so in the known words', async () => {
  const { metadata } = await play('defaults', { answers: { GetState: [REFUSED] } });
  expect(metadata['Migration']).toMatchObject({ Failed: true, FailureReason: 'failed to retrive domain state' });
});

test('a migration of a domain that cannot be read a second time says which time', async () => {
  const { metadata } = await play('defaults', { answers: { GetXMLDesc: [{}, REFUSED] } });
  const FailureReason = "failed to get domain spec: virError(Code=38, Domain=10, Message='refused')";
  expect(metadata['Migration']).toMatchObject({ Failed: true, FailureReason });
});

test('a target says at which step its preparation failed', async () => {
  const { vmi } = migrations.find((c) => c.name.endsWith('-target-paused'))?.input ?? {};
  const withDisk = structuredClone(vmi) as PreparedInput['vmi'] & Vmi;
  Object.assign(withDisk.spec.domain.devices, { disks: [{ name: 'lost', disk: { bus: 'virtio' } }] });
  const unconverted = await play('target-paused', { vmi: withDisk });
  expect(unconverted.steps[0]?.error).toBe('conversion failed: no matching volume with name lost found');
  const unread = await play('target-paused', { config: { podCPUSetError: 'no such file' } });
  const context = 'Failed to generate libvirt domain from VMI spec: failed to read pod cpuset: no such file';
  expect(unread.steps[0]?.error).toBe(context);
});

test('links of a domain that cannot be parsed are not refreshed, and the answer says why', async () => {
  const { steps } = await play('finalize-link-refresh-error', { answers: { GetXMLDesc: [{ xml: '<domain' }] } });
  expect(steps[0]?.error).toBe('parsing domain XML failed, err: XML syntax error on line 1: unexpected EOF');
});

test('directories of a config map, such as a kubelet makes, are packed with the files in them', async () => {
  const source = '/var/run/kubevirt-private/config-map/cfg';
  const files = { [`${source}/a.txt`]: { content: 'A' }, [`${source}/..data/b.txt`]: { content: 'B' } };
  const { steps } = await play('configmap', { files });
  expect(steps.map(({ error }) => error)).toEqual([undefined]);
});

test('a target makes an image of its own for a config volume whose size the source did not record', async () => {
  const { vmi } = seeds.find((c) => c.name.endsWith('-target-size-missing'))?.input ?? {};
  const withStatus = structuredClone(vmi) as PreparedInput['vmi'] & Vmi;
  withStatus.status = { ...withStatus.status, volumeStatus: [{ name: 'cfg', target: '' }] };
  const { steps, made } = await play('target-size-missing', { vmi: withStatus });
  expect(steps.map(({ error }) => error)).toEqual([undefined]);
  expect(made).toEqual(['xorrisofs']);
});

test.each(['{nope', '{"return":5}', '{"return":""}', '{}'])(
  'a guest whose agent answers %s about its file systems is not frozen blindly, but thawed',
  async (reply) => {
    const agent = { 'guest-fsfreeze-status': [{ reply }] };
    const steps = [{ rpc: 'FreezeVirtualMachine' }, { rpc: 'UnfreezeVirtualMachine' }];
    const result = await play('freeze-thaw', { agent, steps });
    const errors = result.steps.map(({ error }) => error);
    expect(errors).toEqual([`failed to strip FSFreeze status: ${reply}`, undefined]);
    expect(calls(result)).not.toContain('FSFreeze');
    expect(calls(result)).toContain('FSThaw');
  },
);

test('a migration without a link to refresh is finalized also where its domain cannot be looked up just now', async () => {
  const { steps } = await play('finalize-nothing', { answers: { LookupDomainByName: [REFUSED] } });
  expect(steps.map(({ error }) => error)).toEqual([undefined]);
});

test('a domain whose definition broke off is defined anew when it turns out that it does not start', async () => {
  const steps = [1, 2, 3].map(() => ({ rpc: 'SyncVirtualMachine' }));
  const answers = { DomainDefineXML: [{}, REFUSED], CreateWithFlags: [REFUSED] };
  const result = await play('define-masquerade', { answers, steps });
  const refused = "LibvirtError(Code=38, Domain=10, Message='refused')";
  expect(result.steps.map(({ error }) => error)).toEqual([refused, refused, undefined]);
  const changing = new Set<unknown>(['DomainDefineXML', 'CreateWithFlags']);
  const [first, second, third] = result.steps.map((step) => calls({ steps: [step] }).filter((c) => changing.has(c)));
  expect([first, second]).toEqual([['DomainDefineXML', 'DomainDefineXML'], ['CreateWithFlags']]);
  expect(third).toEqual(['DomainDefineXML', 'DomainDefineXML', 'CreateWithFlags']);
  expect(result.aliases).toEqual({ tap0: 'default' });
});
