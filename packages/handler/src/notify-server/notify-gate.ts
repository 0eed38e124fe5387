import * as fs from 'node:fs';
import * as path from 'node:path';
import type { Duplex } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import type { NotifyEntrance, NotifyHandlers, NotifyServer, PeerIdentity } from '@virtwire/shared-proto';
import { serveNotify } from '@virtwire/shared-proto';
import type { Logger } from '@virtwire/telemetry';
import { errorText, HandlerError } from '../errors.ts';
import type { EventRecorder } from '../events/recorder.ts';
import type { ObjectRef } from '../model.ts';

/** What the notify gate needs. */
export interface NotifyGateDeps {
  readonly handlers: NotifyHandlers;
  readonly events: EventRecorder;
  /** The node that failures of the server are reported on. */
  readonly node: ObjectRef;
  readonly now: () => number;
  readonly log: Logger;
}

/** The door for one VMI's pipe. Disposing of it lets nobody in any more; who is in may stay for a while. */
export interface NotifyDoor extends Disposable {
  accept(connection: Duplex): void;
}

/**
 * Keeps the notify server up: on the shared socket for peers that dial it, and behind one door per VMI for the pipes.
 */
export interface NotifyGate extends AsyncDisposable {
  /** Resolves when connections are served. */
  start(): Promise<void>;
  /** Opens the door for a VMI; it stays open across restarts of the server. */
  openDoor(identity: PeerIdentity): NotifyDoor;
  /** Rejects after ten failures in a row. */
  readonly failed: Promise<never>;
}

const SOCKET_NAME = 'domain-notify.sock';
const CHECK_PERIOD_MS = 5_000;
const MAX_FAILURES = 10;
const STABLE_RUN_MS = 60_000;
const STOP_LIMIT_MS = 10_000;
const RESTART_STEP_MS = 100;
/** How long connections that are open may go on once their door is closed. */
const LINGER_MS = 30_000;

interface Door {
  readonly identity: PeerIdentity;
  entrance: NotifyEntrance | undefined;
}

class Gate implements NotifyGate {
  readonly failed: Promise<never>;
  readonly #deps: NotifyGateDeps;
  readonly #socketPath: string;
  readonly #doors = new Set<Door>();
  readonly #stop = new AbortController();
  #reject: (error: HandlerError) => void = () => undefined;
  #server: NotifyServer | undefined;
  #inode = 0n;
  #watcher: fs.FSWatcher | undefined;
  #loop: Promise<void> | undefined;
  #wake: () => void = () => undefined;

  constructor(deps: NotifyGateDeps, shareDir: string) {
    this.#deps = deps;
    this.#socketPath = path.join(shareDir, SOCKET_NAME);
    this.failed = new Promise<never>((_resolve, reject) => {
      this.#reject = reject;
    });
    this.failed.catch(() => undefined);
  }

  async start(): Promise<void> {
    await this.#serve();
    this.#loop = this.#supervise();
  }

  openDoor(identity: PeerIdentity): NotifyDoor {
    const door: Door = { identity, entrance: this.#server?.openEntrance(identity) };
    this.#doors.add(door);
    return {
      accept: (connection) => {
        if (door.entrance === undefined) connection.destroy();
        else door.entrance.accept(connection);
      },
      [Symbol.dispose]: () => {
        this.#doors.delete(door);
        const { entrance } = door;
        door.entrance = undefined;
        if (entrance === undefined) return;
        // A launcher tells the end of its domain after the handler has cleaned up; cut off, it would wait for 45 s.
        if (entrance.connectionCount === 0) entrance[Symbol.dispose]();
        else setTimeout(() => entrance[Symbol.dispose](), LINGER_MS).unref();
      },
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    this.#wake();
    await this.#loop;
    await this.#close();
  }

  async #serve(): Promise<void> {
    const { handlers, log } = this.#deps;
    const directory = path.dirname(this.#socketPath);
    fs.mkdirSync(directory, { recursive: true, mode: 0o755 });
    const onFault = (error: Error): void => log.warn({ reason: error }, 'notify connection failed');
    this.#server = await serveNotify(this.#socketPath, handlers, { maxConnections: 1_024, onFault });
    this.#inode = fs.statSync(this.#socketPath, { bigint: true }).ino;
    for (const door of this.#doors) door.entrance = this.#server.openEntrance(door.identity);
    this.#watcher = fs.watch(directory, (_event, name) => {
      if (name === SOCKET_NAME) this.#wake();
    });
    this.#watcher.on('error', () => this.#wake());
  }

  async #close(): Promise<void> {
    this.#watcher?.close();
    for (const door of this.#doors) {
      door.entrance?.[Symbol.dispose]();
      door.entrance = undefined;
    }
    const server = this.#server;
    this.#server = undefined;
    try {
      await server?.stop(STOP_LIMIT_MS);
    } catch (error) {
      this.#deps.log.warn({ reason: errorText(error) }, 'the old notify server did not stop cleanly');
    }
  }

  /** What is wrong with the socket file; undefined when it is still ours. @source notify-server/server.go */
  #fault(): string | undefined {
    try {
      if (fs.statSync(this.#socketPath, { bigint: true }).ino === this.#inode) return undefined;
      return `socket file ${this.#socketPath} was removed or replaced externally`;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') {
        return `socket file ${this.#socketPath} was removed or replaced externally`;
      }
      return `error watching socket file ${this.#socketPath}: ${errorText(error)}`;
    }
  }

  #isStopped(): boolean {
    return this.#stop.signal.aborted;
  }

  async #supervise(): Promise<void> {
    let failures = 0;
    let startedAtMs = this.#deps.now();
    while (!this.#isStopped()) {
      await this.#pause(CHECK_PERIOD_MS);
      const fault = this.#isStopped() ? undefined : this.#fault();
      if (fault === undefined) continue;
      this.#deps.log.warn(`socket file ${this.#socketPath} changed, stopping notify server`);
      if (this.#deps.now() - startedAtMs >= STABLE_RUN_MS) failures = 0;
      failures = await this.#restart(fault, failures);
      startedAtMs = this.#deps.now();
      if (failures >= MAX_FAILURES) {
        const message = `Domain notify server reached max consecutive failures (${MAX_FAILURES})`;
        this.#deps.log.fatal(message);
        this.#reject(new HandlerError('NotifyServer', message));
        return;
      }
    }
  }

  /** Starts the server anew until it runs or has failed too often; returns the failures in a row. */
  async #restart(fault: string, before: number): Promise<number> {
    let reason = fault;
    for (let failures = before + 1; ; failures += 1) {
      this.#deps.log.error({ reason }, 'Domain notify server exited unexpectedly');
      const message = `Domain notify server exited unexpectedly: ${reason}`;
      this.#deps.events.event(this.#deps.node, 'Warning', 'NotifyServerFailure', message);
      if (failures >= MAX_FAILURES || this.#stop.signal.aborted) return failures;
      try {
        await this.#close();
        await this.#serve();
        return failures;
      } catch (error) {
        reason = errorText(error);
        await this.#pause(RESTART_STEP_MS * failures);
      }
    }
  }

  async #pause(ms: number): Promise<void> {
    const woken = new AbortController();
    this.#wake = () => woken.abort();
    const signal = AbortSignal.any([woken.signal, this.#stop.signal]);
    await sleep(ms, undefined, { signal, ref: false }).catch(() => undefined);
  }
}

/** Builds the notify gate on `<shareDir>/domain-notify.sock`. */
export function createNotifyGate(deps: NotifyGateDeps, shareDir: string): NotifyGate {
  return new Gate(deps, shareDir);
}
