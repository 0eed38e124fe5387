import { expect, test } from 'vitest';
import type { Vmi } from '../../model.ts';
import { sampleVmi } from '../../testing/samples.ts';
import { lockedMemoryBytes, memoryOverhead } from './locked-memory.ts';

const GI = 1n << 30n;
const small = (edit?: (vmi: Vmi) => void): Vmi =>
  sampleVmi('Scheduled', (vmi) => {
    vmi.spec.domain.memory = { guest: '256Mi' };
    vmi.spec.domain.cpu = { cores: 1, sockets: 1, threads: 1 };
    edit?.(vmi);
  });

test('the least overhead of a VM with one vCPU is 268Mi', () => {
  expect(memoryOverhead(small(), undefined)).toBe(268n << 20n);
});

test('every further passed-through device locks the memory of the guest once more', () => {
  const withGpus = (count: number): Vmi =>
    small((vmi) => {
      vmi.spec.domain.devices.gpus = Array.from({ length: count }, (_, i) => ({ name: `g${i}`, deviceName: 'x' }));
    });
  const one = lockedMemoryBytes(withGpus(1), undefined);
  expect(one - lockedMemoryBytes(small(), undefined)).toBe(GI);
  expect(lockedMemoryBytes(withGpus(3), undefined) - one).toBe(2n * 268_436_000n);
});

test('a broken ratio leaves the overhead as it is', () => {
  expect(memoryOverhead(small(), 'much')).toBe(memoryOverhead(small(), undefined));
  expect(memoryOverhead(small(), '2')).toBeGreaterThan(memoryOverhead(small(), '1.5'));
});
