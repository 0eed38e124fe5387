import { constants } from 'node:os';
import { childrenOf } from './proc.ts';
import { libc } from '../libc.ts';

const WNOHANG = 1;
const SWEEP_MS = 10_000;
const SECOND_LOOK_MS = 500;

/** A process that was adopted by this one and has ended. */
export interface ReapedProcess {
  readonly pid: number;
  readonly comm: string;
  readonly exitCode: number | undefined;
  readonly signal: string | undefined;
}

/** What the reaper needs to know from its owner. */
export interface ReaperOptions {
  /** True for children that Node itself waits for (those of `child_process`); they are never touched. */
  readonly isOwnChild: (pid: number) => boolean;
  /**
   * True for programs that this process never starts itself: they are collected at once. Who waits for the end of such a
   * process (libvirt, for a QEMU that it asked what it can do) would otherwise wait for the second look too.
   */
  readonly isOrphan?: (comm: string) => boolean;
  readonly onReaped?: (process: ReapedProcess) => void;
  readonly sweepMs?: number;
}

/**
 * Collects orphans that the kernel gave to this process (it is PID 1 or a child subreaper). libuv waits for its own
 * children by pid, right when SIGCHLD arrives, and {@link runTool} within 50 ms; an orphan stays a zombie. So a child is
 * collected only if it is still a zombie half a second after it was first seen as one, with turns of the event loop in
 * between, and `isOwnChild` denies it; one that `isOrphan` knows is collected at once. Looks at each SIGCHLD and every 10 s, since several deaths may arrive as one
 * signal.
 */
export function startReaper(options: ReaperOptions): Disposable {
  const firstSeenAtMs = new Map<number, number>();
  let next: NodeJS.Timeout | undefined;
  let stopped = false;

  const look = (): void => {
    if (stopped) return;
    const nowMs = performance.now();
    const zombies = childrenOf(process.pid).filter((p) => p.state === 'Z' && !options.isOwnChild(p.pid));
    const pids = new Set(zombies.map((z) => z.pid));
    for (const pid of firstSeenAtMs.keys()) if (!pids.has(pid)) firstSeenAtMs.delete(pid);
    for (const { pid, comm } of zombies) {
      const seenAtMs = firstSeenAtMs.get(pid);
      const isDue = seenAtMs !== undefined && nowMs - seenAtMs >= SECOND_LOOK_MS;
      if (isDue || options.isOrphan?.(comm) === true) {
        firstSeenAtMs.delete(pid);
        const reaped = reap(pid, comm);
        if (reaped !== undefined) options.onReaped?.(reaped);
      } else if (seenAtMs === undefined) firstSeenAtMs.set(pid, nowMs);
    }
    if (firstSeenAtMs.size > 0) next ??= setTimeout(lookAfterPoll, SECOND_LOOK_MS);
  };
  /** After a poll phase of the event loop, in which libuv collects its own children, even if the loop was held up. */
  const lookAfterPoll = (): void => {
    next = undefined;
    setImmediate(look);
  };

  const sweep = setInterval(look, options.sweepMs ?? SWEEP_MS);
  sweep.unref();
  process.on('SIGCHLD', look);
  look();
  return {
    [Symbol.dispose](): void {
      stopped = true;
      clearInterval(sweep);
      clearTimeout(next);
      process.off('SIGCHLD', look);
    },
  };
}

function reap(pid: number, comm: string): ReapedProcess | undefined {
  const status = Buffer.alloc(4);
  if (libc().waitpid(pid, status, WNOHANG) !== pid) return undefined;
  const word = status.readInt32LE(0);
  const signalNumber = word & 0x7f;
  const signal = Object.entries(constants.signals).find(([, n]) => n === signalNumber)?.[0];
  return signalNumber === 0
    ? { pid, comm, exitCode: (word >> 8) & 0xff, signal: undefined }
    : { pid, comm, exitCode: undefined, signal };
}
