import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { HostError } from '../errors.ts';

/** How to start a process that stays. */
export interface StartProcessOptions {
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly cwd?: string;
  readonly uid?: number;
  readonly gid?: number;
  /** Called for each line of output; without it output goes nowhere. */
  readonly onLine?: (line: string, stream: 'stdout' | 'stderr') => void;
}

/** How a process ended. */
export interface ProcessExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** A process that was started and is waited for. */
export interface StartedProcess {
  readonly pid: number;
  readonly exited: Promise<ProcessExit>;
  /** Sends a signal unless it has ended; returns whether it was sent. */
  kill(signal: NodeJS.Signals): boolean;
}

/**
 * Starts a long-lived child, such as a libvirt daemon; it is this process's child and Node waits for it.
 *
 * @throws {HostError} `ToolNotFound` or `Syscall` when it cannot be started.
 */
export async function startProcess(
  file: string,
  args: readonly string[],
  options: StartProcessOptions = {},
): Promise<StartedProcess> {
  const { onLine, uid, gid, cwd } = options;
  const output = onLine === undefined ? 'ignore' : 'pipe';
  const child = spawn(file, args, {
    stdio: ['ignore', output, output],
    env: options.env ?? process.env,
    ...(cwd === undefined ? {} : { cwd }),
    ...(uid === undefined ? {} : { uid }),
    ...(gid === undefined ? {} : { gid }),
  });
  const exited = new Promise<ProcessExit>((resolve) => {
    child.once('exit', (code, signal) => resolve({ code, signal }));
  });
  await new Promise<void>((resolve, reject) => {
    child.once('spawn', resolve);
    child.once('error', (error: NodeJS.ErrnoException) => {
      reject(HostError.from(error, error.code === 'ENOENT' ? 'ToolNotFound' : 'Syscall', `start ${file}`));
    });
  });
  child.on('error', () => undefined); // a signal that could not be sent; kill() reports it
  if (onLine !== undefined) {
    for (const stream of ['stdout', 'stderr'] as const) {
      const input = child[stream];
      if (input !== null) createInterface({ input }).on('line', (line) => onLine(line, stream));
    }
  }
  return { pid: child.pid ?? 0, exited, kill: (signal) => child.kill(signal) };
}
