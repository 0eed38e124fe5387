import { join } from 'node:path';
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';

import type { Vmi } from '@virtwire/vm-model';

import type { CallOutcome } from '../api.ts';
import { knock } from '../transport/grpc-client.ts';
import { type ClientDeps, connectLauncher, type LauncherClient } from './launcher-client.ts';
import { type NotifyPipe, openNotifyPipe } from './notify-socket.ts';
import { findSocket, removeRecord, type SocketDirs, writeRecord } from './sockets.ts';

/** A real handler takes longer than this from the last event to the end of the pipe, */
const LAST_ANSWER_MS = 250;
/** and answers it long before this. */
const ANSWER_LIMIT_MS = 5_000;
/** Turns of the event loop that bytes need through the pipe, on a machine too busy for the time to say anything. */
const TURNS_THROUGH_PIPE = 16;

/** What a session needs of its handler. */
export interface SessionDeps {
  readonly client: ClientDeps;
  readonly dirs: SocketDirs;
  readonly notifySocket: string;
  readonly podShareDir: (podUid: string) => string;
  /** Resolves when the notify server has answered what it was told. */
  readonly notifyAnswered: () => Promise<void>;
}

/** What a handler holds for one VMI: the long connection, the notify pipe and the ghost record. */
export class Session {
  readonly #deps: SessionDeps;
  readonly #podUid: string;
  #client: LauncherClient | undefined;
  #pipe: NotifyPipe | undefined;
  #socketPath: string | undefined;
  /** Whether the launcher has had a sync of this handler. */
  hasSynced = false;

  constructor(deps: SessionDeps, podUid: string) {
    this.#deps = deps;
    this.#podUid = podUid;
  }

  /** The pipe is opened once, the connection anew after it broke. @source wire.md 1 Connection lifecycle */
  async client(vmi: Vmi, outcomes: CallOutcome[]): Promise<LauncherClient> {
    if (this.#client?.isOpen === true) return this.#client;
    const path = this.socket(vmi);
    const { namespace, name, uid } = vmi.metadata;
    writeRecord(this.#deps.dirs, { name, namespace, socketFile: path, uid });
    try {
      this.#client = await connectLauncher(this.#deps.client, path, outcomes);
      const pipePath = join(this.#deps.podShareDir(this.#podUid), 'domain-notify-pipe.sock');
      this.#pipe ??= await openNotifyPipe(pipePath, this.#deps.notifySocket);
      return this.#client;
    } catch (caught) {
      this.#client?.[Symbol.dispose]();
      this.#client = undefined;
      removeRecord(this.#deps.dirs, uid);
      throw caught;
    }
  }

  /** @throws {Error} with the handler's words. */
  socket(vmi: Vmi): string {
    const { dirs, client } = this.#deps;
    return (this.#socketPath = findSocket(dirs, client.facts.handler, vmi, this.#podUid));
  }

  /** A connection for one REST call or listing. */
  own(vmi: Vmi, outcomes: CallOutcome[]): Promise<LauncherClient> {
    return connectLauncher(this.#deps.client, this.socket(vmi), outcomes);
  }

  /** Connections without a byte, to see who listens. @source captures README facts Connects without a byte */
  async knock(times: number): Promise<void> {
    const path = this.#socketPath;
    for (let i = 0; path !== undefined && i < times; i++) await knock(path);
  }

  /** The VM is gone: nothing of it stays. The answer to the launcher's last event still goes through the pipe. */
  async forget(uid: string): Promise<void> {
    removeRecord(this.#deps.dirs, uid);
    await sleep(LAST_ANSWER_MS);
    await Promise.race([this.#deps.notifyAnswered(), sleep(ANSWER_LIMIT_MS, undefined, { ref: false })]);
    for (let turn = 0; turn < TURNS_THROUGH_PIPE; turn++) await nextTurn();
    await this.close();
  }

  /** The handler ends: launchers and records stay. */
  async close(): Promise<void> {
    this.#client?.[Symbol.dispose]();
    this.#client = undefined;
    const pipe = this.#pipe;
    this.#pipe = undefined;
    await pipe?.close();
  }
}
