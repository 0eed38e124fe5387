import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { chmodSync, closeSync, existsSync, openSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect } from '../connection.ts';
import { LibvirtError } from '../errors.ts';
import { findTool, prepareSession, prepareSystem } from './daemon-setup.ts';
import type { DaemonCommand } from './daemon-setup.ts';

const START_TIMEOUT_MS = 60_000;
const STOP_TIMEOUT_MS = 20_000;
const POLL_MS = 20;

/** What kind of daemon to start. */
export interface PrivateDaemonOptions {
  /** Program, `libvirtd` (default) or `virtqemud`, by name or path. */
  readonly program?: string;
  /** `session`: unprivileged, as user `uid`, opened as `qemu:///session`. Default `system`. */
  readonly mode?: 'system' | 'session';
  /** User of a session daemon. Default 65534. */
  readonly uid?: number;
  /** Further lines for the daemon's configuration file. */
  readonly configuration?: readonly string[];
}

/** A daemon of its own: state, sockets and configuration lie in one temporary directory. */
export interface PrivateDaemon extends AsyncDisposable {
  /** For CONNECT_OPEN; connect with both this and `socketPath`. */
  readonly uri: string;
  readonly socketPath: string;
  readonly directory: string;
  /** Process of the daemon, undefined while it does not run. */
  readonly pid: number | undefined;
  /** All the daemon has logged so far. */
  log(): string;
  /** Starts it again after `kill` or `stop`; waits until it answers. */
  start(): Promise<void>;
  /** SIGTERM and wait; its guests go on running. */
  stop(): Promise<void>;
  /** SIGKILL and wait; its guests go on running. */
  kill(): Promise<void>;
  /** SIGSTOP: connections are accepted, nothing is answered. */
  pause(): void;
  /** SIGCONT. */
  resume(): void;
}

/** Why no private daemon can run on this machine, or undefined when one can. */
export function privateDaemonObstacle(program = 'libvirtd'): string | undefined {
  if (process.getuid?.() !== 0) return 'needs root';
  if (findTool(program) === undefined) return `needs ${program}`;
  if (findTool('qemu-system-x86_64') === undefined) return 'needs qemu-system-x86_64';
  return findTool('unshare') === undefined ? 'needs unshare' : undefined;
}

/**
 * Starts a libvirt daemon as a child process that shares nothing with the system's: in system mode it runs in a mount
 * namespace of its own with its directories bound over /run/libvirt, /etc/libvirt and /var/{lib,cache,log}/libvirt; in
 * session mode under another user with its own XDG directories. Disposing ends it and its guests, and removes all.
 *
 * @throws {LibvirtError} `ConnectFailed` with the end of the daemon's log when it does not answer in 60 s.
 */
export async function startPrivateDaemon(options: PrivateDaemonOptions = {}): Promise<PrivateDaemon> {
  const obstacle = privateDaemonObstacle(options.program);
  if (obstacle !== undefined) throw LibvirtError.client('ConnectFailed', `no private daemon: ${obstacle}`);
  const directory = await mkdtemp(join(tmpdir(), 'libvirt-'));
  chmodSync(directory, 0o755);
  const program = findTool(options.program ?? 'libvirtd') ?? '';
  const setup = { directory, program, configuration: options.configuration ?? [] };
  const command = options.mode === 'session' ? prepareSession(setup, options.uid ?? 65_534) : prepareSystem(setup);
  const daemon = new RunningDaemon(directory, command);
  try {
    await daemon.start();
  } catch (error) {
    await daemon[Symbol.asyncDispose]();
    throw error;
  }
  return daemon;
}

class RunningDaemon implements PrivateDaemon {
  readonly uri: string;
  readonly socketPath: string;
  readonly directory: string;
  readonly #command: DaemonCommand;
  #child: ChildProcess | undefined;

  constructor(directory: string, command: DaemonCommand) {
    this.directory = directory;
    this.#command = command;
    this.uri = command.uri;
    this.socketPath = command.socketPath;
  }

  get pid(): number | undefined {
    return this.#isRunning() ? this.#child?.pid : undefined;
  }

  log(): string {
    return existsSync(this.#logPath()) ? readFileSync(this.#logPath(), 'utf8') : '';
  }

  async start(): Promise<void> {
    if (this.#isRunning()) return;
    const log = openSync(this.#logPath(), 'a');
    const { file, args, environment } = this.#command;
    this.#child = spawn(file, [...args], { env: { ...process.env, ...environment }, stdio: ['ignore', log, log] });
    closeSync(log);
    const child = this.#child;
    const exit = new AbortController();
    child.once('exit', (code, signal) => exit.abort(new Error(`it exited with ${String(code ?? signal)}`)));
    child.once('error', (error) => exit.abort(error));
    try {
      const connection = await connect({
        uri: this.uri,
        socketPath: this.socketPath,
        waitForDaemonMs: START_TIMEOUT_MS,
        reconnect: false,
        signal: exit.signal,
      });
      await connection.close();
    } catch (error) {
      const text = `${this.#command.program} did not start: ${String(error)}\n${this.log().slice(-2_000)}`;
      throw LibvirtError.client('ConnectFailed', text, { cause: error });
    }
  }

  async stop(): Promise<void> {
    await this.#end('SIGTERM');
  }

  async kill(): Promise<void> {
    await this.#end('SIGKILL');
  }

  pause(): void {
    this.#child?.kill('SIGSTOP');
  }

  resume(): void {
    this.#child?.kill('SIGCONT');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.resume();
    await this.stop();
    await this.#endGuests();
    rmSync(this.directory, { recursive: true, force: true, maxRetries: 5 });
  }

  #logPath(): string {
    return join(this.directory, 'daemon.log');
  }

  #isRunning(): boolean {
    return this.#child?.pid !== undefined && this.#child.exitCode === null && this.#child.signalCode === null;
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    const child = this.#child;
    if (child === undefined || !this.#isRunning()) return;
    const exited = new Promise<boolean>((resolve) => child.once('exit', () => resolve(true)));
    child.kill(signal);
    const inTime = await Promise.race([exited, sleep(STOP_TIMEOUT_MS, false, { ref: false })]);
    if (!inTime) {
      child.kill('SIGKILL');
      await exited;
    }
  }

  /** Ends the QEMU processes whose pid files the daemon left: those it started, and no others. */
  async #endGuests(): Promise<void> {
    const directory = this.#command.guestPidDirectory;
    const names = existsSync(directory) ? readdirSync(directory).filter((name) => name.endsWith('.pid')) : [];
    const pids = names.map((name) => Number(readFileSync(join(directory, name), 'utf8'))).filter((pid) => pid > 1);
    for (const pid of pids) signalIfAlive(pid, 'SIGKILL');
    const deadlineAtMs = performance.now() + STOP_TIMEOUT_MS;
    while (pids.some((pid) => signalIfAlive(pid, 0)) && performance.now() < deadlineAtMs) await sleep(POLL_MS);
  }
}

function signalIfAlive(pid: number, signal: NodeJS.Signals | 0): boolean {
  // The pid may have been taken by another process since; QEMU's command line names this daemon's guest.
  try {
    const state = readFileSync(`/proc/${String(pid)}/stat`, 'utf8')
      .replace(/^.*\)/s, '')
      .trim();
    if (state.startsWith('Z') || !readFileSync(`/proc/${String(pid)}/cmdline`, 'utf8').includes('guest=')) return false;
    process.kill(pid, signal);
    return true;
  } catch {
    return false;
  }
}
