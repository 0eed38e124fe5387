import * as fs from 'node:fs';
import { errnoOf, HostError } from '../errors.ts';

/** What `/proc/<pid>/stat` says of a process. */
export interface ProcessStat {
  readonly pid: number;
  /** Program name, at most 15 bytes. */
  readonly comm: string;
  /** One letter: R, S, D, Z (zombie), T, X... */
  readonly state: string;
  readonly parentPid: number;
  /** Clock ticks from boot to the process's start; with the pid it names a process for ever. */
  readonly startTicks: bigint;
}

/**
 * Reads `/proc/<pid>/stat`.
 *
 * @param procPath `/proc/<pid>` or a path that means an opened one.
 * @throws {HostError} `ProcessGone` when there is no such process.
 */
export function readProcessStat(pid: number, procPath = `/proc/${pid}`): ProcessStat {
  return parseProcessStat(readProc(pid, `${procPath}/stat`));
}

/** Reads the fields of one `stat` line; the name may hold blanks and brackets. */
export function parseProcessStat(line: string): ProcessStat {
  const open = line.indexOf('(');
  const close = line.lastIndexOf(')');
  const rest = line.slice(close + 2).split(' ');
  return {
    pid: Number.parseInt(line, 10),
    comm: line.slice(open + 1, close),
    state: rest[0] ?? '',
    parentPid: Number(rest[1] ?? 0),
    startTicks: BigInt(rest[19] ?? 0),
  };
}

/** The pid of a process as its innermost pid namespace sees it (third word of `NSpid:`, or the last when it is alone). */
export function readNamespacePid(pid: number): number {
  const line = /^NSpid:\s+(.*)$/m.exec(readProc(pid, `/proc/${pid}/status`))?.[1] ?? '';
  return Number(line.trim().split(/\s+/).at(-1) ?? pid);
}

/** Arguments of a process; empty for a zombie or kernel thread. */
export function readCommandLine(pid: number): string[] {
  return readProc(pid, `/proc/${pid}/cmdline`).split('\0').slice(0, -1);
}

/** All processes of this pid namespace, those that end during the walk left out. */
export function listProcesses(): ProcessStat[] {
  return fs
    .readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      try {
        return [readProcessStat(Number(name))];
      } catch {
        return [];
      }
    });
}

/** Direct children of a process. */
export function childrenOf(pid: number): ProcessStat[] {
  return listProcesses().filter((p) => p.parentPid === pid);
}

function readProc(pid: number, path: string): string {
  try {
    return fs.readFileSync(path, 'latin1');
  } catch (caught) {
    const errno = errnoOf(caught);
    if (errno !== 'ENOENT' && errno !== 'ESRCH') throw HostError.from(caught, 'Syscall', `read ${path}`);
    throw new HostError('ProcessGone', `failed to find process with pid: ${pid}`, { errno, cause: caught });
  }
}
