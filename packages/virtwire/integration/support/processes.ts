import { childrenOf, listProcesses, readCommandLine, readProcessStat } from '@virtwire/host';
import type { ProcessStat } from '@virtwire/host';

/** A process and everything below it. */
export function treeOf(pid: number): ProcessStat[] {
  const children = childrenOf(pid);
  return [...children, ...children.flatMap((child) => treeOf(child.pid))];
}

/** QEMU of a sandbox, by the pid of its launcher. */
export function qemuOf(launcherPid: number): number | undefined {
  return treeOf(launcherPid).find(({ pid, state }) => state !== 'Z' && isQemu(pid))?.pid;
}

function isQemu(pid: number): boolean {
  try {
    const [program = '', ...args] = readCommandLine(pid);
    return program.includes('qemu-system') && args.includes('-name');
  } catch {
    return false;
  }
}

/** False once a process has ended; a zombie has. */
export function isAlive(pid: number): boolean {
  try {
    return readProcessStat(pid).state !== 'Z';
  } catch {
    return false;
  }
}

/** Processes whose command line holds a word. */
export function processesWith(word: string): number[] {
  return listProcesses().flatMap(({ pid }) => {
    try {
      return pid !== process.pid && readCommandLine(pid).some((arg) => arg.includes(word)) ? [pid] : [];
    } catch {
      return [];
    }
  });
}
