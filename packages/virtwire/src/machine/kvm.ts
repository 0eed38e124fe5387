import { existsSync, readFileSync } from 'node:fs';
import { errorText } from '../errors.ts';
import type { RunTool } from './run-tool.ts';

/** Whether guests can run on the processor, and what speaks against it. */
export interface KvmProbe {
  readonly works: boolean;
  readonly reason: string;
}

const QEMU = 'qemu-system-x86_64';
const RUN_MS = 700;

/** True when the processor's flags name hardware virtualisation. */
export function hasVirtualisation(cpuinfo: string): boolean {
  return /^(flags|Features)\s*:.*\b(vmx|svm)\b/m.test(cpuinfo);
}

/** Reads what QEMU said of a guest that was started under KVM and asked for its status. */
export function parseKvmTrial(output: string): KvmProbe {
  if (/KVM internal error/i.test(output)) return { works: false, reason: 'guests die with "KVM internal error"' };
  if (output.includes('VM status: running')) return { works: true, reason: 'a guest ran' };
  const words = output.split('\n').find((line) => /kvm|accel/i.test(line)) ?? 'QEMU said nothing';
  return { works: false, reason: words.trim() };
}

/**
 * Finds out whether KVM works by running a guest's firmware under it. The device alone proves nothing: it may be there
 * and open while every guest dies.
 */
export async function probeKvm(run: RunTool): Promise<KvmProbe> {
  if (!existsSync('/dev/kvm')) return { works: false, reason: '/dev/kvm does not exist' };
  const cpuinfo = readFileSync('/proc/cpuinfo', 'utf8');
  if (process.arch === 'x64' && !hasVirtualisation(cpuinfo)) {
    return { works: false, reason: 'the processor offers neither vmx nor svm' };
  }
  const script = `sleep ${RUN_MS / 1_000}; echo info status; echo quit`;
  const command = `{ ${script}; } | ${QEMU} -accel kvm -m 32 -nodefaults -display none -serial none -monitor stdio 2>&1`;
  try {
    return parseKvmTrial(await run('sh', ['-c', command], { timeoutMs: 10_000 }));
  } catch (caught) {
    return parseKvmTrial(errorText(caught));
  }
}
