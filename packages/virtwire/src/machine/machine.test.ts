import { expect, test } from 'vitest';
import { hasVirtualisation, parseKvmTrial } from './kvm.ts';
import { findLeftovers } from './snapshot.ts';

test('only what is new and bears a mark is left over', () => {
  const before = ['link eth0', 'mount / (ext4)'];
  const after = [...before, 'netns virtwire-1', 'netns other', 'mount /run/vw1 (ext4)'];
  expect(findLeftovers(before, after, ['virtwire-1', '/run/vw1'])).toEqual([
    'netns virtwire-1',
    'mount /run/vw1 (ext4)',
  ]);
  expect(findLeftovers(before, after)).toHaveLength(3);
});

test.each([
  ['flags\t\t: fpu vme vmx sse', true],
  ['flags\t\t: fpu svm', true],
  ['flags\t\t: fpu sse2 hypervisor', false],
  ['model name\t: vmx machine', false],
])('%s: virtualisation %s', (line, expected) => {
  expect(hasVirtualisation(`processor\t: 0\n${line}\n`)).toBe(expected);
});

test.each([
  ['a guest that runs', 'QEMU 7.2\n(qemu) VM status: running\n', true],
  ['a guest that dies', 'KVM internal error. Suberror: 1\n(qemu) VM status: paused (internal-error)', false],
  ['a guest that dies a moment later', 'VM status: running\nKVM internal error. Suberror: 3\n', false],
  ['a device that cannot be opened', 'Could not access KVM kernel module: Permission denied', false],
  ['silence', '', false],
])('%s: KVM works %s', (_title, output, expected) => {
  expect(parseKvmTrial(output).works).toBe(expected);
});
