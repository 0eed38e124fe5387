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
  readonly onReaped?: (process: ReapedProcess) => void;
  readonly sweepMs?: number;
}

/**
 * Collects orphans that the kernel gave to this process (it is PID 1 or a child subreaper). libuv waits for its own
 * children by pid, right when SIGCHLD arrives; an orphan stays a zombie. So a child is collected only if it is still a
 * zombie at a second look, after libuv has had its turn, and `isOwnChild` denies it. Looks at each SIGCHLD and every
 * 10 s, since several deaths may arrive as one signal.
 */
export function startReaper(options: ReaperOptions): Disposable {
  const suspects = new Set<number>();
  let second: NodeJS.Timeout | undefined;
  let stopped = false;

  const look = (): void => {
    if (stopped) return;
    const zombies = childrenOf(process.pid).filter((p) => p.state === 'Z' && !options.isOwnChild(p.pid));
    for (const zombie of zombies.filter((z) => suspects.has(z.pid))) {
      const reaped = reap(zombie.pid, zombie.comm);
      if (reaped !== undefined) options.onReaped?.(reaped);
    }
    const fresh = zombies.filter((z) => !suspects.has(z.pid)).map((z) => z.pid);
    suspects.clear();
    for (const pid of fresh) suspects.add(pid);
    // The second look comes after a poll phase of the event loop, where libuv collects its own children.
    if (fresh.length > 0) second ??= setTimeout(() => ((second = undefined), setImmediate(look)), SECOND_LOOK_MS);
  };

  const sweep = setInterval(look, options.sweepMs ?? SWEEP_MS);
  sweep.unref();
  process.on('SIGCHLD', look);
  look();
  return {
    [Symbol.dispose](): void {
      stopped = true;
      clearInterval(sweep);
      clearTimeout(second);
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
