import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import type { Logger } from '@virtwire/telemetry';
import type { Clock } from '../config/clock.ts';
import { createLineSplitter } from './log-lines.ts';

/** A program that is to run as long as the launcher does. */
export interface SupervisedProgram {
  readonly name: string;
  readonly path: string;
  readonly args: readonly string[];
  readonly env: NodeJS.ProcessEnv;
  /** Gets each line of its standard error. */
  readonly onLine: (line: string) => void;
  /** What is due between its end and its next start. */
  readonly beforeRestart?: () => Promise<void>;
}

/** A program under supervision. */
export interface Supervised {
  /** Number of times that it was started. */
  readonly starts: number;
  readonly pid: number | undefined;
  /** Kills it for good; resolves when it is gone. */
  stop(): Promise<void>;
}

const RESTART_AFTER_MS = 1_000;

function waitForEnd(child: ChildProcess): Promise<void> {
  return new Promise((resolve) => {
    child.once('error', () => resolve());
    child.once('exit', () => resolve());
  });
}

/**
 * Starts a program and starts it again one second after each end, until stopped.
 *
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/util/libvirt_helper.go StartVirtqemud
 */
export function superviseProgram(program: SupervisedProgram, clock: Clock, log: Logger): Supervised {
  const stopping = new AbortController();
  let child: ChildProcess | undefined;
  let starts = 0;

  async function runOnce(): Promise<void> {
    const lines = createLineSplitter();
    child = spawn(program.path, program.args, { env: program.env, stdio: ['ignore', 'ignore', 'pipe'] });
    starts++;
    child.stderr?.on('data', (chunk: Buffer) => lines.push(chunk).forEach(program.onLine));
    child.stderr?.on('end', () => lines.end().forEach(program.onLine));
    child.on('error', (error) => log.error({ reason: error }, `failed to start ${program.name}`));
    await waitForEnd(child);
  }

  async function run(): Promise<void> {
    const isStopping = (): boolean => stopping.signal.aborted;
    while (!isStopping()) {
      await runOnce();
      if (isStopping()) return;
      log.error(`${program.name} exited, restarting`);
      await clock.sleep(RESTART_AFTER_MS, stopping.signal);
      await program.beforeRestart?.();
    }
  }

  const running = run();
  return {
    get starts() {
      return starts;
    },
    get pid() {
      return child?.pid;
    },
    async stop() {
      stopping.abort();
      child?.kill('SIGKILL');
      await running;
    },
  };
}
