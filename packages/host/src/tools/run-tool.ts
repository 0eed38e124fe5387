import * as net from 'node:net';
import { finished } from 'node:stream/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { HostError } from '../errors.ts';
import { libc } from '../libc.ts';
import type { NetworkNamespace } from '../net/namespace.ts';
import { spawnChild } from './spawn.ts';
import type { SpawnedChild, SpawnRequest } from './spawn.ts';

const DEFAULT_TIMEOUT_MS = 30_000;
const DEFAULT_OUTPUT_BYTES = 1024 * 1024;
const WNOHANG = 1;
const SIGKILL = 9;
/** Time for the pipes to run dry after the end of a tool whose own children still hold them. */
const DRAIN_MS = 200;

/** How to run a tool. */
export interface RunToolOptions {
  /** Given on standard input; otherwise that is empty. */
  readonly stdin?: string | Uint8Array;
  /** The tool is killed after this time; 30 s by default. */
  readonly timeoutMs?: number;
  /** Limit of each of the two outputs; 1 MiB by default. */
  readonly maxOutputBytes?: number;
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly cwd?: string;
  /** The network namespace that the tool runs in, without a wrapper program. */
  readonly network?: NetworkNamespace;
  /** Kills the tool when aborted; the call then rejects with the signal's reason. */
  readonly signal?: AbortSignal;
  /** Exit codes that are no failure; `[0]` by default. */
  readonly okCodes?: readonly number[];
}

/** What a tool said. */
export interface ToolResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/**
 * Runs one program to its end. There is no shell: arguments are passed as they are.
 *
 * @throws {HostError} `ToolNotFound`; `ToolFailed` with the tool's own words for another exit code or a signal;
 *   `ToolTimeout`; `ToolOutputTooLarge`.
 */
export async function runTool(
  file: string,
  args: readonly string[],
  options: RunToolOptions = {},
): Promise<ToolResult> {
  const { signal, network } = options;
  signal?.throwIfAborted();
  const child = spawnChild({
    file,
    args,
    env: options.env ?? process.env,
    ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
    ...(network === undefined ? {} : { within: (action: () => number) => network.run(action) }),
  } satisfies SpawnRequest);
  const run = new RunningTool(child, options.maxOutputBytes ?? DEFAULT_OUTPUT_BYTES);
  const stop = (): void => run.kill('aborted');
  const timer = setTimeout(() => run.kill('timeout'), options.timeoutMs ?? DEFAULT_TIMEOUT_MS);
  signal?.addEventListener('abort', stop);
  try {
    const status = await run.finish(options.stdin);
    signal?.throwIfAborted();
    return judge(file, args, run, status, options.okCodes ?? [0]);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', stop);
  }
}

function judge(
  file: string,
  args: readonly string[],
  run: RunningTool,
  status: number,
  okCodes: readonly number[],
): ToolResult {
  const what = [file, ...args.slice(0, 6)].join(' ');
  const [stdout, stderr] = [run.output(0), run.output(1)];
  if (run.killed === 'timeout') throw new HostError('ToolTimeout', `${what}: no end in time`);
  if (run.killed === 'output') throw new HostError('ToolOutputTooLarge', `${what}: too much output`);
  const signalNumber = status & 0x7f;
  const code = (status >> 8) & 0xff;
  const words = (stderr.trim() || stdout.trim()).slice(0, 2_000);
  if (signalNumber !== 0)
    throw new HostError('ToolFailed', `${what}: killed by signal ${signalNumber} ${words}`.trim());
  if (!okCodes.includes(code)) throw new HostError('ToolFailed', `${what}: exit status ${code}: ${words}`);
  return { code, stdout, stderr };
}

type KillReason = 'timeout' | 'aborted' | 'output';

/** A tool between start and end: collects its output and waits for it without blocking. */
class RunningTool {
  killed: KillReason | undefined;
  readonly #child: SpawnedChild;
  readonly #chunks: [Buffer[], Buffer[]] = [[], []];
  readonly #outputs: readonly net.Socket[];
  readonly #stdin: net.Socket;
  #status: number | undefined;

  constructor(child: SpawnedChild, maxBytes: number) {
    this.#child = child;
    this.#stdin = new net.Socket({ fd: child.stdin, readable: false, writable: true });
    this.#stdin.on('error', () => undefined); // a tool may end before it has read everything
    this.#outputs = [child.stdout, child.stderr].map((fd, index) => {
      const socket = new net.Socket({ fd, readable: true, writable: false });
      let bytes = 0;
      socket.on('data', (chunk: Buffer) => {
        bytes += chunk.length;
        if (bytes > maxBytes) this.kill('output');
        else this.#chunks[index === 0 ? 0 : 1].push(chunk);
      });
      return socket;
    });
  }

  output(index: 0 | 1): string {
    return Buffer.concat(this.#chunks[index]).toString('utf8');
  }

  kill(reason: KillReason): void {
    if (this.#status !== undefined) return;
    this.killed ??= reason;
    process.kill(this.#child.pid, SIGKILL); // still ours: it is not waited for yet
  }

  /** @returns the wait status. */
  async finish(stdin: string | Uint8Array | undefined): Promise<number> {
    this.#stdin.end(stdin ?? '');
    const dry = Promise.allSettled(this.#outputs.map((o) => finished(o, { writable: false }))).then(() => true);
    try {
      const status = await this.#ended(dry);
      await Promise.race([dry, delay(DRAIN_MS)]);
      return status;
    } finally {
      for (const socket of [this.#stdin, ...this.#outputs]) socket.destroy();
    }
  }

  /** Most tools end within a moment of closing their output, so that is waited for; the timer is for the others. */
  async #ended(dry: Promise<boolean>): Promise<number> {
    let isDry = false;
    for (let pauseMs = 1; ; pauseMs = Math.min(pauseMs * 2, 50)) {
      const status = this.#poll();
      if (status !== undefined) return status;
      if (isDry) await delay(pauseMs);
      else isDry = await Promise.race([dry, delay(Math.max(pauseMs, 20), false)]);
    }
  }

  #poll(): number | undefined {
    const status = Buffer.alloc(4);
    const result = libc().waitpid(this.#child.pid, status, WNOHANG);
    if (result === 0) return undefined;
    // -1: somebody else has collected the child; its exit status is lost, so it counts as failed.
    this.#status = result === this.#child.pid ? status.readInt32LE(0) : 0xff00;
    return this.#status;
  }
}
