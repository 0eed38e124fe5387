import { expect, test } from 'vitest';
import { LauncherError } from '../errors.ts';
import { readStandaloneVmi } from './standalone-vmi.ts';

const flags = { namespace: 'ns', name: 'vm', uid: 'u-1' };
const YAML = `
metadata:
  namespace: ns
  name: vm
  uid: u-1
spec:
  domain:
    memory:
      guest: 64Mi
    devices: {}
`;

test('reads YAML', async () => {
  const vmi = await readStandaloneVmi(YAML, flags);
  expect(vmi.spec.domain.memory?.guest).toBe('64Mi');
});

test('reads JSON, and numbers of any length', async () => {
  const json =
    '\n{"metadata":{"namespace":"ns","name":"vm","uid":"u-1"},"spec":{"terminationGracePeriodSeconds":9007199254740993,"domain":{"devices":{}}}}';
  expect((await readStandaloneVmi(json, flags)).spec.terminationGracePeriodSeconds).toBe(9_007_199_254_740_993n);
});

test.each([
  ['no VMI at all', '', 'STANDALONE_VMI is no VirtualMachineInstance: '],
  ['a list', '- 1', 'STANDALONE_VMI is no VirtualMachineInstance: '],
  ['broken YAML', 'metadata: [', 'STANDALONE_VMI is no VirtualMachineInstance: '],
  ['broken JSON', '{"metadata":', 'STANDALONE_VMI is no VirtualMachineInstance: '],
  ['a wrong type', YAML.replace('name: vm', 'name: [vm]'), 'STANDALONE_VMI is no VirtualMachineInstance: '],
  [
    'a list that contains itself',
    'metadata: &m\n  labels: *m\n  name: vm',
    'STANDALONE_VMI is no VirtualMachineInstance: ',
  ],
  [
    'another VM',
    YAML.replace('name: vm', 'name: other'),
    'STANDALONE_VMI has the name "other", but the launcher was started with --name "vm"',
  ],
  [
    'no namespace',
    YAML.replace('  namespace: ns\n', ''),
    'STANDALONE_VMI has the namespace "", but the launcher was started with --namespace "ns"',
  ],
])('refuses %s', async (_title, text, message) => {
  const reading = readStandaloneVmi(text, flags);
  await expect(reading).rejects.toThrow(LauncherError);
  await expect(reading).rejects.toThrow(message);
});
