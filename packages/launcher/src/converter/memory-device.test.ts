import type { Vmi } from '@virtwire/vm-model';
import { expect, test } from 'vitest';

import { vmiWith } from '../testing/conversion.ts';
import { memoryDeviceOf } from './memory-device.ts';

const MIB = 1 << 20;

function vmi(guest: string, maxGuest: string, guestAtBoot: string, pageSize?: string): Vmi {
  const hugepages = pageSize === undefined ? {} : { hugepages: { pageSize } };
  return { ...vmiWith({ domain: { memory: { guest, maxGuest, ...hugepages } } }), status: { memory: { guestAtBoot } } };
}

test.each([
  ['1536Mi', '4Gi', '1Gi', undefined, 3072 * MIB, 512 * MIB, 2 * MIB],
  ['1Gi', '4Gi', '1Gi', '2Mi', 3072 * MIB, 0, 2 * MIB],
  ['2Gi', '4Gi', '1Gi', '1Gi', 3072 * MIB, 1024 * MIB, 1024 * MIB],
  ['2G', '4G', '1G', undefined, 3e9, 1e9, 2 * MIB],
])('%s of at most %s, booted with %s (pages %s)', (guest, max, boot, pageSize, size, requested, block) => {
  const { Model, Target } = memoryDeviceOf(vmi(guest, max, boot, pageSize));
  expect(Model).toBe('virtio-mem');
  expect([Target?.Size, Target?.Requested, Target?.Block].map((part) => part?.Value)).toEqual([size, requested, block]);
  expect(Target?.Node).toBe('0');
});

test.each([
  ['less than at boot', vmi('512Mi', '4Gi', '1Gi'), "Memory size '-512Mi' must be greater than or equal to 0"],
  ['at most less than at boot', vmi('1Gi', '1Gi', '2Gi'), "Memory size '-1Gi' must be greater than or equal to 0"],
  [
    'a VMI that does not say what it booted with',
    { ...vmi('1Gi', '2Gi', '1Gi'), status: {} },
    'the VMI does not state guest, maxGuest and guestAtBoot of its memory',
  ],
])('refuses %s', (_title, wrong, message) => {
  expect(() => memoryDeviceOf(wrong)).toThrow(message);
});
