import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { Capture, RecordedMessage } from './captures.ts';
import { misprintProblems } from './misprints.ts';
import { readRecordings } from './recordings.ts';
import { recordProblems } from './records.ts';

const { captures } = readRecordings(join(import.meta.dirname, '../../../../testdata/captures.ndjson.br'));
const lifecycle = captures.filter(({ path }) => path.startsWith('v1.9.0/lifecycle/'));

/** The scenario with a text changed in the bytes of the nth call of a method, and in those after it up to `last`. */
function withText(rpc: string, [nth, last]: readonly [number, number], from: string, to: string): readonly Capture[] {
  const calls = lifecycle.filter(({ method }) => method.endsWith(`/${rpc}`)).slice(nth, last + 1);
  const change = (message: RecordedMessage): RecordedMessage => {
    const text = Buffer.from(message.base64, 'base64').toString('latin1').replace(from, to);
    return { ...message, base64: Buffer.from(text, 'latin1').toString('base64') };
  };
  const changed = lifecycle.map((capture) => {
    if (!calls.includes(capture)) return capture;
    const { request, response } = capture;
    return { ...capture, request: change(request), ...(response && { response: change(response) }) };
  });
  expect(changed).not.toEqual(lifecycle);
  return changed;
}

test('no recorded call of a real handler or launcher is taken for misprinted', () => {
  expect(misprintProblems(captures)).toEqual([]);
});

test.each<[what: string, rpc: string, nth: number, from: string, to: string, place: string]>([
  ['the name of a VM', 'SyncVirtualMachine', 3, '"name":"vm1"', '"name":"wm1"', 'VMI.vmiJson.metadata.name'],
  ['a size', 'SyncVirtualMachine', 3, '"capacity":"64Mi"', '"capacity":"64Gi"', '.spec.volumes.0.emptyDisk.capacity'],
  ['a command line', 'HandleDomainEvent', 9, '=ttyS0 quiet"', '=ttyS0 quiex"', '.domainJSON.Spec.OS.KernelArgs'],
  [
    'a list of a domain',
    'GetDomain',
    5,
    '"Device":"tap0"',
    '"Device":"tab0"',
    '.domain.Spec.Devices.Interfaces.0.Target.Device',
  ],
  [
    'a field of no JSON',
    'SyncVirtualMachine',
    3,
    'default\x12\x03tap',
    'default\x12\x03tab',
    '.interfaceDomainAttachment.default',
  ],
])('%s that is misprinted in one call is reported', (_what, rpc, nth, from, to, place) => {
  const problems = misprintProblems(withText(rpc, [nth, nth], from, to));
  expect(problems).toHaveLength(1);
  expect(problems[0]?.path).toBe(lifecycle.filter(({ method }) => method.endsWith(`/${rpc}`))[nth]?.path);
  expect(problems[0]?.problem.split(' is ')[0]).toSatisfy((told: string) => told.endsWith(place));
});

test('a header that is misprinted is reported with the calls', () => {
  const [, , third] = lifecycle;
  if (third === undefined) throw new Error('the test data holds no such call');
  const bad = { ...third, requestMetadata: { ...third.requestMetadata, ':authority': ['localhosd'] } };
  const problems = recordProblems(lifecycle.with(2, bad)).map(({ path, problem }) => `${path}: ${problem}`);
  expect(problems).toContain(
    `${third.path}: the header :authority is "localhosd", and "localhost" in the calls before and after`,
  );
});

test.each<[what: string, nth: number, last: number, from: string, to: string]>([
  ['changes and stays so', 3, 99, '"name":"vm1"', '"name":"wm1"'],
  ['changes for more than one call', 2, 3, '"name":"vm1"', '"name":"wm1"'],
  ['counts', 3, 3, '02:00:00:12:34:56', '02:00:00:12:34:57'],
  ['becomes another', 3, 3, 'console=ttyS0 quiet', 'console=tty1,9600n8'],
])('a text that %s is not reported', (_what, nth, last, from, to) => {
  expect(misprintProblems(withText('SyncVirtualMachine', [nth, last], from, to))).toEqual([]);
});

test('an item of a list that takes the place of another is not reported', () => {
  const [from, to] = ['{"name":"data","target":"vda"}', '{"name":"date","target":"vdb"}'];
  expect(misprintProblems(withText('SyncVirtualMachine', [3, 3], from, to))).toEqual([]);
});
