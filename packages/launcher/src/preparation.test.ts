import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { hasHypervisor } from './preparation.ts';

const isX64 = process.arch === 'x64';

test.each<[string, string, readonly string[], string, boolean]>([
  ['KVM on CPUs of Intel', 'kvm', ['dev/kvm'], 'flags\t\t: fpu vmx aes', true],
  ['KVM on CPUs of AMD', 'kvm', ['dev/kvm'], 'flags\t\t: fpu svm aes', true],
  ['a KVM device on CPUs that cannot virtualise', 'kvm', ['dev/kvm'], 'flags\t\t: fpu aes', !isX64],
  ['no KVM device', 'kvm', ['dev/mshv'], 'flags\t\t: fpu vmx', false],
  ['Hyper-V, below which CPUs do not show what they can', 'hyperv-direct', ['dev/mshv'], 'flags\t\t: fpu aes', true],
  ['no Hyper-V device', 'hyperv-direct', ['dev/kvm'], 'flags\t\t: fpu vmx', false],
  ['a hypervisor that nobody knows is KVM', 'other', ['dev/kvm'], 'flags\t\t: fpu vmx', true],
])('the hypervisor of a node: %s', (_title, hypervisor, devices, cpu, expected) => {
  const root = mkdtempSync(join(tmpdir(), 'vw-node-'));
  try {
    for (const path of [...devices, 'proc/cpuinfo']) {
      mkdirSync(dirname(join(root, path)), { recursive: true });
      writeFileSync(join(root, path), `processor\t: 0\n${cpu}\n\n`.repeat(300));
    }
    expect(hasHypervisor({ hypervisor }, root)).toBe(expected);
  } finally {
    rmSync(root, { recursive: true });
  }
});
