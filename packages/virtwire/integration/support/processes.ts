import { childrenOf, listProcesses, readCommandLine, readProcessStat } from '@virtwire/host';
import type { ProcessStat } from '@virtwire/host';

/** A process and everything below it. */
export function treeOf(pid: number): ProcessStat[] {
  const children = childrenOf(pid);
  return [...children, ...children.flatMap((child) => treeOf(child.pid))];
}

/** QEMU of a sandbox, by the pid of its process 1. */
export function qemuOf(initPid: number): number | undefined {
  return treeOf(initPid).find(({ pid, state }) => state !== 'Z' && isQemu(pid))?.pid;
}

/** Launcher of a sandbox: what its process 1 has started, or that process itself where there is no monitor. */
export function launcherOf(initPid: number): number {
  return [{ pid: initPid }, ...treeOf(initPid)].find(({ pid }) => isLauncher(pid))?.pid ?? initPid;
}

function isLauncher(pid: number): boolean {
  try {
    return readCommandLine(pid).some((arg) => /virt-launcher\.mjs$|launcher\/(src|dist)\/main\.[jt]s$/.test(arg));
  } catch {
    return false;
  }
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
