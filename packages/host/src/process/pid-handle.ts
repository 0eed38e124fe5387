import * as fs from 'node:fs';
import { constants } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import { HostError } from '../errors.ts';
import { libc, pidfdOpen, pidfdSendSignal, throwErrno } from '../libc.ts';
import { readProcessStat } from './proc.ts';
import type { ProcessStat } from './proc.ts';
import { SafePath } from '../paths/safe-path.ts';

const POLLIN = 1;

/**
 * How often an awaited process is looked at. Node cannot wait for a descriptor of a kind it does not know, and a
 * blocking wait would hold one of the few pool threads for the whole life of a VM.
 */
const EXIT_POLL_MS = 100;

/**
 * A process held by descriptors (pidfd and `/proc/<pid>`), so that a reused pid is never taken for it.
 * Hold it with `using`.
 */
export class PidHandle implements Disposable {
  readonly pid: number;
  readonly startTicks: bigint;
  readonly #pidFd: number;
  readonly #procFd: number;
  #open = true;

  private constructor(pid: number, pidFd: number, procFd: number, startTicks: bigint) {
    this.pid = pid;
    this.startTicks = startTicks;
    this.#pidFd = pidFd;
    this.#procFd = procFd;
  }

  /** @throws {HostError} `ProcessGone` when there is no such process. */
  static open(pid: number): PidHandle {
    const pidFd = pidfdOpen(pid);
    if (pidFd < 0) throw new HostError('ProcessGone', `failed to find process with pid: ${pid}`, { errno: 'ESRCH' });
    let procFd: number | undefined;
    try {
      procFd = fs.openSync(`/proc/${pid}`, fs.constants.O_RDONLY | fs.constants.O_DIRECTORY);
      const { startTicks } = readProcessStat(pid, `/proc/self/fd/${procFd}`);
      return new PidHandle(pid, pidFd, procFd, startTicks);
    } catch (caught) {
      fs.closeSync(pidFd);
      if (procFd !== undefined) fs.closeSync(procFd);
      throw HostError.from(caught, 'ProcessGone', `open process ${pid}`);
    }
  }

  /** `/proc/<pid>` of this very process: reads below it fail once the process is gone. */
  get procPath(): string {
    if (!this.#open) throw new HostError('ProcessGone', `handle of process ${this.pid} is closed`);
    return `/proc/self/fd/${this.#procFd}`;
  }

  stat(): ProcessStat {
    return readProcessStat(this.pid, this.procPath);
  }

  /** False once the process has ended; a zombie has ended. */
  isAlive(): boolean {
    const wanted = Buffer.alloc(8);
    wanted.writeInt32LE(this.#pidFd, 0);
    wanted.writeInt16LE(POLLIN, 4);
    return this.#open && libc().poll(wanted, 1, 0) === 0;
  }

  /** The root directory as the process sees it. */
  root(): SafePath {
    return SafePath.openRoot(`${this.procPath}/root`);
  }

  /** Path of one of its namespaces: `net`, `mnt`, `pid`... */
  namespacePath(kind: 'net' | 'mnt' | 'pid' | 'ipc' | 'uts' | 'cgroup'): string {
    return `${this.procPath}/ns/${kind}`;
  }

  /** Sends a signal to this process and to no other; returns false if it has ended. */
  signal(name: keyof typeof constants.signals): boolean {
    if (pidfdSendSignal(this.#pidFd, constants.signals[name]) === 0) return true;
    if (!this.isAlive()) return false;
    return throwErrno(`signal ${name} to process ${this.pid}`);
  }

  /** Resolves when the process has ended; rejects with the signal's reason when aborted. */
  async exited(signal?: AbortSignal): Promise<void> {
    while (this.isAlive()) await delay(EXIT_POLL_MS, undefined, signal === undefined ? {} : { signal });
  }

  [Symbol.dispose](): void {
    if (!this.#open) return;
    this.#open = false;
    fs.closeSync(this.#pidFd);
    fs.closeSync(this.#procFd);
  }
}
