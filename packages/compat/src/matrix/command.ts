import { spawn } from 'node:child_process';
import type { ChildProcessByStdio } from 'node:child_process';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { CompatError } from '../errors.ts';

/** A process under test. */
export interface CommandProcess {
  readonly child: ChildProcessByStdio<Writable, Readable, Readable>;
  readonly hasEnded: boolean;
  /** Resolves when it has ended. */
  readonly ended: Promise<void>;
  /** What to tell when it ended too early. */
  describe(): string;
}

const MAX_KEPT_LINES = 20;

/**
 * Starts a command under test.
 *
 * @param command words with blanks between them; no shell sees them.
 * @param onLine takes each line of its standard output.
 * @throws {CompatError} `BadOption` for an empty command.
 */
export function startCommand(
  command: string,
  args: readonly string[],
  options: {
    readonly env: Readonly<Record<string, string>>;
    readonly onLine: (line: string) => void;
    readonly log: (line: string) => void;
  },
): CommandProcess {
  const [program, ...words] = command.split(/\s+/).filter((word) => word !== '');
  if (program === undefined) throw new CompatError('BadOption', 'the command is empty');
  const env = { ...process.env, ...options.env };
  const child = spawn(program, [...words, ...args], { stdio: ['pipe', 'pipe', 'pipe'], env });
  const kept: string[] = [];
  let hasEnded = false;
  let reason = '';
  const ended = new Promise<void>((resolve) => {
    child.once('error', (error) => {
      reason = error.message;
      hasEnded = true;
      resolve();
    });
    child.once('close', (code, signal) => {
      reason ||= `ended with ${signal ?? `code ${code}`}`;
      hasEnded = true;
      resolve();
    });
  });
  child.stdin.on('error', () => undefined);
  createInterface({ input: child.stdout }).on('line', options.onLine);
  createInterface({ input: child.stderr }).on('line', (line) => {
    options.log(line);
    if (kept.push(line) > MAX_KEPT_LINES) kept.shift();
  });
  return {
    child,
    ended,
    get hasEnded() {
      return hasEnded;
    },
    describe: () => `${program}: ${reason}\n${kept.join('\n')}`,
  };
}
