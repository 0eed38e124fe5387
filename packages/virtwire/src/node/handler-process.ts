import { closeSync, existsSync } from 'node:fs';
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { readProcessStat } from '@virtwire/host';
import type { Logger } from '@virtwire/telemetry';
import { renderNodeHandlerFlags } from '../node-handler/flags.ts';
import { errorText, VirtwireError } from '../errors.ts';
import type { Journal } from '../journal/journal.ts';
import { NODE_OWNER } from '../journal/resource.ts';
import type { Installation } from '../sandbox/installation.ts';
import type { NodeLayout } from '../state/layout.ts';
import { openLog } from './logs.ts';

const RESTART_MS = [100, 500, 1_000, 2_000, 5_000, 10_000];
const STOP_MS = 15_000;
const READY_MS = 30_000;
/** A handler that ran this long has earned a quick restart. */
const STEADY_MS = 3_000;

/** What the handler is started with. */
export interface HandlerProcessDeps {
  readonly layout: NodeLayout;
  readonly installation: Installation;
  readonly journal: Journal;
  readonly nodeName: string;
  /** Guests may be emulated. */
  readonly useEmulation: boolean;
  readonly log: Logger;
  readonly onRestart?: (reason: string) => void;
}

/** The handler as a process of its own, started again whenever it ends. */
export interface HandlerProcess extends AsyncDisposable {
  readonly pid: number | undefined;
  /** Resolves when it accepts events. */
  readonly ready: Promise<void>;
}

/** Command line of the handler of a node without Kubernetes. */
function handlerArguments({ layout, installation, nodeName, useEmulation }: HandlerProcessDeps): string[] {
  const flags = renderNodeHandlerFlags({
    nodeName,
    shareDir: layout.handlerShareDir,
    privateDir: layout.handlerPrivateDir,
    podsDir: layout.podsMount,
    vmiDir: layout.vmisDir,
    eventsDir: layout.eventsDir,
    useEmulation,
  });
  return [...installation.nodeArgs, join(installation.root, installation.virtwire), 'node-handler', ...flags];
}

/** A look at the signal that the compiler does not think it knows the result of. */
function isAborted(signal: AbortSignal): boolean {
  return signal.aborted;
}

class SupervisedHandler implements HandlerProcess {
  readonly ready: Promise<void>;
  readonly #deps: HandlerProcessDeps;
  readonly #stopped = new AbortController();
  readonly #loop: Promise<void>;
  #child: ChildProcess | undefined;

  constructor(deps: HandlerProcessDeps) {
    this.#deps = deps;
    this.#loop = this.#supervise();
    this.ready = this.#waitReady();
    this.ready.catch(() => undefined); // whoever waits for it sees the failure
  }

  get pid(): number | undefined {
    return this.#child?.pid;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopped.abort();
    const child = this.#child;
    child?.kill('SIGTERM');
    const timer = setTimeout(() => child?.kill('SIGKILL'), STOP_MS);
    await this.#loop;
    clearTimeout(timer);
  }

  async #supervise(): Promise<void> {
    const { log, onRestart } = this.#deps;
    const { signal } = this.#stopped;
    let tries = 0;
    for (;;) {
      const startedAt = Date.now();
      const reason = await this.#runOnce().catch(errorText);
      if (signal.aborted) return;
      tries = Date.now() - startedAt > STEADY_MS ? 0 : tries + 1;
      log.warn({ reason }, 'the handler ended, starting it again');
      onRestart?.(reason);
      await sleep(RESTART_MS[Math.min(tries, RESTART_MS.length) - 1] ?? 100, undefined, { signal }).catch(
        () => undefined,
      );
      if (isAborted(signal)) return;
    }
  }

  async #runOnce(): Promise<string> {
    const { layout, installation, journal, nodeName } = this.#deps;
    const fd = openLog(layout.handlerLog);
    try {
      const node = join(installation.root, installation.node);
      const args = handlerArguments(this.#deps);
      // A group of its own: Ctrl-C at the terminal is for the command line, which stops the handler last.
      const child = spawn(node, args, {
        stdio: ['ignore', fd, fd],
        detached: true,
        env: { ...process.env, NODE_NAME: nodeName },
      });
      this.#child = child;
      const ended = new Promise<string>((resolve, reject) => {
        child.once('error', reject);
        child.once('exit', (code, signal) => resolve(signal === null ? `exit code ${code}` : `signal ${signal}`));
      });
      if (child.pid === undefined) return await ended;
      const resource = { kind: 'process', pid: child.pid, startTicks: startTicksOf(child.pid) } as const;
      journal.record(NODE_OWNER, resource);
      const reason = await ended;
      journal.forget({ owner: NODE_OWNER, resource });
      return reason;
    } finally {
      closeSync(fd);
      this.#child = undefined;
    }
  }

  async #waitReady(): Promise<void> {
    const socket = join(this.#deps.layout.handlerShareDir, 'domain-notify.sock');
    for (const deadline = Date.now() + READY_MS; Date.now() < deadline; await sleep(20)) {
      if (this.#stopped.signal.aborted || existsSync(socket)) return;
    }
    const where = this.#deps.layout.handlerLog;
    throw new VirtwireError('Timeout', `the handler does not start: see the end of ${where}`);
  }
}

function startTicksOf(pid: number): string {
  try {
    return String(readProcessStat(pid).startTicks);
  } catch {
    return ''; // it has ended already; nothing will match this
  }
}

/** Starts the handler and keeps it running. */
export function superviseHandler(deps: HandlerProcessDeps): HandlerProcess {
  return new SupervisedHandler(deps);
}
