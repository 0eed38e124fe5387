import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { Vmi, VmiPhase } from '@virtwire/vm-model';
import { FileStore } from './file-store.ts';

const ROOT = resolve(import.meta.dirname, '../../../..');
const HANDLER = fileURLToPath(import.meta.resolve('./handler-process.ts'));
const LAUNCHER = fileURLToPath(import.meta.resolve('./launcher-process.ts'));

/** Waits for a condition; throws with `what` when the deadline passes. */
export async function until(what: string, condition: () => boolean, deadlineMs = 15_000): Promise<void> {
  const endsAtMs = Date.now() + deadlineMs;
  while (!condition()) {
    if (Date.now() > endsAtMs) throw new Error(`timed out waiting for: ${what}`);
    await sleep(5);
  }
}

/** A child that says JSON lines. */
export class TalkingProcess {
  readonly lines: Record<string, unknown>[] = [];
  readonly child: ChildProcess;
  readonly #errors: string[] = [];

  constructor(command: string, args: readonly string[]) {
    this.child = spawn(command, args, { cwd: ROOT, stdio: ['pipe', 'pipe', 'pipe'] });
    const { stdout, stderr, stdin } = this.child;
    if (stdout !== null)
      createInterface({ input: stdout }).on('line', (line) => this.lines.push(JSON.parse(line) as never));
    if (stderr !== null) createInterface({ input: stderr }).on('line', (line) => void this.#errors.push(line));
    stdin?.on('error', () => undefined);
  }

  /** What it has said of a kind, in order. */
  said(key: string): unknown[] {
    return this.lines.filter((line) => key in line).map((line) => line[key]);
  }

  tell(command: object): void {
    this.child.stdin?.write(`${JSON.stringify(command)}\n`);
  }

  /** What it wrote to its standard error. */
  get log(): string {
    return this.#errors.join('\n');
  }

  async end(signal: NodeJS.Signals): Promise<void> {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return;
    const gone = new Promise<void>((done) => void this.child.once('exit', () => done()));
    this.child.kill(signal);
    await gone;
  }
}

/** A node with a handler process and launcher processes, all of it in a temporary directory. */
export class NodeScene implements AsyncDisposable {
  readonly root = mkdtempSync('/tmp/vh');
  readonly store = new FileStore(join(this.root, 'vmis'));
  readonly #launchers = new Map<string, TalkingProcess>();
  #handler: TalkingProcess | undefined;

  /** The handler process that runs now. */
  get handler(): TalkingProcess {
    if (this.#handler === undefined) throw new Error('no handler was started');
    return this.#handler;
  }

  async startHandler(settings: object = {}, isUp = true): Promise<TalkingProcess> {
    const json = JSON.stringify({ root: this.root, stepMs: 0, ...settings });
    const args = ['-C', '@virtwire/source', HANDLER, json];
    this.#handler = new TalkingProcess(process.execPath, args);
    const handler = this.#handler;
    if (isUp) {
      await until('the handler is up', () => handler.said('up').length > 0).catch((error: unknown) => {
        throw new Error(`${String(error)}\n${handler.log}`);
      });
    }
    return handler;
  }

  podUid(name: string): string {
    return `11111111-0000-4000-8000-${name.padStart(12, '0').slice(-12)}`;
  }

  socketOf(name: string): string {
    return join(this.root, 'p', this.podUid(name), 'volumes/kubernetes.io~empty-dir/sockets/launcher-sock');
  }

  /** Starts the launcher of a VM in a mount namespace of its own, whose /run is empty. */
  async startLauncher(name: string): Promise<TalkingProcess> {
    const socket = this.socketOf(name);
    mkdirSync(dirname(socket), { recursive: true });
    const script = 'mount -t tmpfs tmpfs /run && mkdir /run/kubevirt && exec "$@"';
    const node = [process.execPath, '-C', '@virtwire/source', LAUNCHER, socket];
    const launcher = new TalkingProcess('unshare', ['--mount', 'sh', '-c', script, 'sh', ...node]);
    this.#launchers.set(name, launcher);
    await until(`launcher ${name} is ready`, () => launcher.said('ready').length > 0).catch((error: unknown) => {
      throw new Error(`${String(error)}\n${launcher.log}`);
    });
    return launcher;
  }

  /** Makes the pod directory of a VM whose launcher is not there yet. */
  makePod(name: string): void {
    mkdirSync(dirname(this.socketOf(name)), { recursive: true });
  }

  /** Puts a VMI into the store as virtwire's controller hands it over. */
  handOver(name: string, edit: (vmi: Vmi) => void = () => undefined): void {
    const now = `${new Date().toISOString().slice(0, 19)}Z`;
    const vmi: Vmi = {
      apiVersion: 'kubevirt.io/v1',
      kind: 'VirtualMachineInstance',
      metadata: {
        namespace: 'default',
        name,
        uid: `22222222-0000-4000-8000-${name.padStart(12, '0').slice(-12)}`,
        resourceVersion: '1',
        labels: { 'kubevirt.io/nodeName': 'node01' },
      },
      spec: {
        terminationGracePeriodSeconds: 30,
        domain: { devices: { interfaces: [{ name: 'default', masquerade: {} }] }, resources: {} },
        networks: [{ name: 'default', pod: {} }],
      },
      status: {
        phase: 'Scheduled',
        nodeName: 'node01',
        runtimeUser: 107,
        activePods: { [this.podUid(name)]: 'node01' },
        phaseTransitionTimestamps: [{ phase: 'Scheduled', phaseTransitionTimestamp: now }],
      },
    };
    edit(vmi);
    this.store.put(vmi);
  }

  phase(name: string): VmiPhase | undefined {
    return this.store.get(`default/${name}`)?.status?.phase;
  }

  async untilPhase(name: string, phase: VmiPhase, deadlineMs = 15_000): Promise<void> {
    const what = `${name} is ${phase}`;
    await until(what, () => this.phase(name) === phase, deadlineMs).catch((error: unknown) => {
      const log = this.#handler?.log ?? '';
      throw new Error(`${String(error)}; it is ${String(this.phase(name))}\n${log.slice(-4_000)}`);
    });
  }

  hasRecord(name: string): boolean {
    const uid = this.store.get(`default/${name}`)?.metadata.uid ?? `22222222-0000-4000-8000-${name.padStart(12, '0')}`;
    return existsSync(join(this.root, 'private/ghost-records', uid));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#handler?.end('SIGKILL');
    for (const launcher of this.#launchers.values()) await launcher.end('SIGKILL');
    rmSync(this.root, { recursive: true, force: true });
  }
}
