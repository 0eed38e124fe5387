import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { chownSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { connectCmd, serveNotify } from '@virtwire/shared-proto';
import type { CmdClient, NotifyServer } from '@virtwire/shared-proto';
import { parseDomainJson } from '@virtwire/vm-model';
import type { Domain } from '@virtwire/vm-model';

const SCRIPT = join(import.meta.dirname, 'sandbox.sh');
const MAIN = join(import.meta.dirname, '../../src/main.ts');

/** Waits until `find` finds something. */
export async function eventually<T>(what: string, find: () => T | undefined | false, limitMs = 60_000): Promise<T> {
  const giveUpAtMs = Date.now() + limitMs;
  for (;;) {
    const found = find();
    if (found !== undefined && found !== false) return found;
    if (Date.now() > giveUpAtMs) throw new Error(`${what} did not happen within ${limitMs} ms`);
    await sleep(20);
  }
}

/** What a handler heard from the launcher. */
export interface HeardEvent {
  readonly type: string;
  readonly domain: Domain;
}

/** The handler's end of the notify pipe. */
export interface Ear extends AsyncDisposable {
  readonly domains: readonly HeardEvent[];
  readonly k8sEvents: readonly { readonly reason: string; readonly message: string }[];
  /** Waits for a domain event that was or will be heard. */
  hear(what: string, test: (event: HeardEvent) => boolean, limitMs?: number): Promise<HeardEvent>;
  open(): Promise<void>;
  close(): Promise<void>;
}

/** Creates an ear for a pipe; closed. */
function createEar(pipe: string): Ear {
  const domains: HeardEvent[] = [];
  const k8sEvents: { reason: string; message: string }[] = [];
  let server: NotifyServer | undefined;
  const close = async (): Promise<void> => {
    await server?.stop(100);
    server = undefined;
  };
  return {
    domains,
    k8sEvents,
    hear: (what, test, limitMs) => eventually(what, () => domains.find(test), limitMs),
    async open() {
      server = await serveNotify(pipe, {
        handleDomainEvent({ domainJSON, eventType }) {
          domains.push({ type: eventType, domain: parseDomainJson(Buffer.from(domainJSON).toString('utf8')) });
        },
        handleK8sEvent({ eventJSON }) {
          k8sEvents.push(JSON.parse(Buffer.from(eventJSON).toString('utf8')) as { reason: string; message: string });
        },
      });
      chownSync(pipe, 107, 107);
    },
    close,
    [Symbol.asyncDispose]: close,
  };
}

/** A launcher in a pod of its own. */
export interface LauncherPod extends AsyncDisposable {
  readonly root: string;
  readonly shareDir: string;
  readonly logs: readonly Readonly<Record<string, unknown>>[];
  readonly output: () => string;
  /** Resolves with the launcher's exit code. */
  readonly exited: Promise<number | null>;
  readonly ear: Ear;
  /** Process id of the pod's process 1, seen from outside; 0 before there is one. */
  initPid(): number;
  /** Reads nothing of the launcher's output for a while. */
  pauseOutput(ms: number): void;
  /** Process id of the launcher, seen from outside. */
  launcherPid(): number;
  /** Process id of QEMU, seen from outside; undefined while there is none. */
  qemuPid(): number | undefined;
  /** States of all processes of the pod, by process id. */
  processStates(): ReadonlyMap<number, string>;
  /** Process id of the libvirt daemon, seen from outside. */
  daemonPid(): number | undefined;
  waitUntilReady(): Promise<void>;
  waitForLog(msg: string | RegExp): Promise<Readonly<Record<string, unknown>>>;
  connect(): Promise<CmdClient>;
}

function childrenOf(pid: number): readonly number[] {
  try {
    return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number);
  } catch {
    return [];
  }
}

function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
  } catch {
    return '';
  }
}

function stateOf(pid: number): string {
  try {
    return /^State:\s+(\S)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? '';
  } catch {
    return '';
  }
}

function descendantsOf(pid: number): readonly number[] {
  return childrenOf(pid).flatMap((child) => [child, ...descendantsOf(child)]);
}

/** How a launcher pod is started. */
export interface LauncherPodOptions {
  readonly asRoot?: boolean;
  /** What node runs; the launcher's sources when absent. */
  readonly program?: readonly string[];
  /** What is run instead of the launcher, without any flags but those given. */
  readonly command?: readonly string[];
  /** Directory whose files appear in /usr/bin of the pod. */
  readonly programs?: string;
  /** More variables of the environment, `NAME=value`. */
  readonly env?: readonly string[];
  /** Puts something into the pod before it starts. */
  readonly provide?: (pod: Pick<LauncherPod, 'shareDir'>) => void;
}

function commandLine(options: LauncherPodOptions, flags: readonly string[]): readonly string[] {
  const { asRoot = false, command, program = ['-C', '@virtwire/source', MAIN] } = options;
  const env = options.env ?? [];
  const wrapped = env.length === 0 ? [] : ['/usr/bin/env', ...env];
  if (command !== undefined) return [...wrapped, ...command, ...flags];
  const mode = asRoot ? [] : ['--run-as-nonroot'];
  return [...wrapped, process.execPath, ...program, ...mode, '--allow-emulation', ...flags];
}

/** Starts a launcher in fresh mount, pid and network namespaces, as uid 107 or as root. */
export async function startLauncherPod(
  flags: readonly string[],
  options: LauncherPodOptions = {},
): Promise<LauncherPod> {
  const root = mkdtempSync(join(tmpdir(), 'virtwire-launcher-pod-'));
  const shareDir = join(root, 'kubevirt');
  options.provide?.({ shareDir });
  const unshare = ['--mount', '--pid', '--net', '--ipc', '--fork', '--kill-child', '--mount-proc'];
  const child: ChildProcess = spawn('unshare', [...unshare, 'sh', SCRIPT, root, ...commandLine(options, flags)], {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: {
      ...process.env,
      AS_ROOT: options.asRoot === true ? 'yes' : 'no',
      WITH_HOOKS: flags.includes('--libvirt-hook-server-and-client') ? 'yes' : 'no',
      PROGRAMS: options.programs ?? '',
    },
  });
  const logs: Record<string, unknown>[] = [];
  let output = '';
  let rest = '';
  child.stderr?.on('data', (chunk: Buffer) => {
    output += chunk.toString('utf8');
    const lines = (rest + chunk.toString('utf8')).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) if (line.startsWith('{')) logs.push(JSON.parse(line) as Record<string, unknown>);
  });
  const exited = new Promise<number | null>((resolve) => child.once('close', (code) => resolve(code)));
  await eventually('the pod directories', () => existsSync(join(root, 'libvirt')) && existsSync(shareDir));
  const ear = createEar(join(shareDir, 'domain-notify-pipe.sock'));
  const readySocket = join(shareDir, 'sockets/launcher-sock');
  const all = (): readonly number[] => (child.pid === undefined ? [] : descendantsOf(child.pid));
  return {
    root,
    shareDir,
    logs,
    output: () => output,
    exited,
    ear,
    pauseOutput(ms) {
      child.stderr?.pause();
      setTimeout(() => child.stderr?.resume(), ms);
    },
    initPid: () => childrenOf(child.pid ?? 0)[0] ?? 0,
    launcherPid: () => all().find((pid) => /^\S*node.* --name /.test(commandOf(pid))) ?? 0,
    qemuPid: () => all().find((pid) => /qemu-system.*guest=/.test(commandOf(pid))),
    processStates: () => new Map(all().map((pid) => [pid, stateOf(pid)])),
    daemonPid: () => all().find((pid) => /^\S*(libvirtd|virtqemud) -f/.test(commandOf(pid))),
    async waitUntilReady() {
      await eventually('launcher-sock', () => {
        if (child.exitCode !== null) throw new Error(`the launcher ended with ${child.exitCode}:\n${output}`);
        return existsSync(readySocket);
      });
    },
    waitForLog: (msg) =>
      eventually(`log ${String(msg)}`, () =>
        logs.find((line) => (typeof msg === 'string' ? line['msg'] === msg : msg.test(String(line['msg'])))),
      ),
    connect: () => connectCmd(readySocket),
    async [Symbol.asyncDispose]() {
      await ear.close();
      // A change of user clears the death signal that unshare sets, so the pod's first process is ended by hand.
      for (const pid of childrenOf(child.pid ?? 0)) process.kill(pid, 'SIGKILL');
      child.kill('SIGKILL');
      await exited;
      rmSync(root, { recursive: true, force: true });
    },
  };
}
