import { watch } from 'node:fs';
import type { FSWatcher } from 'node:fs';
import * as path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { CmdClient } from '@virtwire/shared-proto';
import { unwrap } from '@virtwire/shared-proto';
import { ANY_ERA } from '@virtwire/shared-proto/compat-rules';
import type { Era } from '@virtwire/shared-proto/compat-rules';
import type { Logger } from '@virtwire/telemetry';
import { errorText, HandlerError } from '../errors.ts';
import type { GhostRecord, GhostRecords } from '../ghost-records/ghost-records.ts';
import { isNonRoot, objectKey } from '../model.ts';
import type { Vmi } from '../model.ts';
import type { Isolation } from '../prepare/parts.ts';
import type { LauncherState } from '../vmi/launcher-state.ts';
import { dialSocket } from './dial.ts';
import { LAUNCHER_START_LIMIT_MS, ownerOf } from './launcher.ts';
import type { LauncherEras } from './launcher-eras.ts';
import type { ConnectLauncher, LauncherInfo, LauncherOwner } from './launcher.ts';
import { findLauncherSocket, isSocketUnresponsive, LAUNCHER_SOCKET, podSocketDirectories } from './sockets.ts';
import type { SocketPlace } from './sockets.ts';

/** Puts a notify socket into a launcher's pod, bound to its VMI; disposing of it removes the socket. */
export type OpenPipe = (owner: LauncherOwner, launcher: Isolation, isNonRoot: boolean) => Promise<AsyncDisposable>;

/** What the launchers of a node need. */
export interface LaunchersDeps {
  readonly records: GhostRecords;
  readonly connect: ConnectLauncher;
  /** Learns how old launchers are; without it every launcher may be of any release. */
  readonly eras?: LauncherEras;
  readonly openPipe: OpenPipe;
  readonly detectIsolation: (socketFile: string) => Promise<Isolation>;
  readonly now: () => number;
  readonly log: Logger;
  /** Told when a launcher that was connected is gone for good. */
  readonly onGone?: (record: GhostRecord) => void;
  /** Told when the socket of a launcher that was waited for has appeared. */
  readonly onSocket?: (key: string) => void;
}

interface Entry {
  readonly owner: LauncherOwner;
  isReady: boolean;
  notInitializedSinceMs: number;
  socketFile: string | undefined;
  client: CmdClient | undefined;
  pipe: AsyncDisposable | undefined;
  connecting: Promise<CmdClient> | undefined;
  lost: Disposable | undefined;
  watcher: FSWatcher | undefined;
  readonly stop: AbortController;
}

/** A socket that refuses so often in a row after the connection ended belongs to a launcher that is gone. */
const CONFIRMED_REFUSALS = 3;
const LOSS_CHECK_STEP_MS = 60;
const LOSS_PING_MS = 250;
/** After that a launcher which neither refuses nor answers is left to the watchdog. */
const MAX_LOSS_CHECKS = 20;

const PIPE_PREFIX = 'failed to detect isolation for launcher pod when setting up notify pipe: ';

/** The launchers of a node: one connection and one pipe for each VMI UID. */
export class Launchers implements AsyncDisposable {
  readonly #deps: LaunchersDeps;
  readonly #place: SocketPlace;
  readonly #entries = new Map<string, Entry>();

  constructor(deps: LaunchersDeps, place: SocketPlace) {
    this.#deps = deps;
    this.#place = place;
  }

  /** Number of launchers that are known. */
  get size(): number {
    return this.#entries.size;
  }

  /** What is held for a UID; undefined without an entry. */
  info(uid: string): LauncherInfo | undefined {
    return this.#entries.get(uid);
  }

  /** Releases that a UID's launcher may be of. */
  eraOf(uid: string): Era {
    return this.#deps.eras?.eraOf(uid) ?? ANY_ERA;
  }

  /**
   * Looks at a VMI's launcher, without dialling and without changing anything.
   *
   * @source KubeVirt v1.9.0 pkg/virt-handler/launcher-clients (IsLauncherClientUnresponsive)
   */
  state(vmi: Vmi): LauncherState {
    const entry = this.#entries.get(vmi.metadata.uid);
    const socketFile = entry?.isReady === true ? entry.socketFile : this.#find(vmi);
    if (socketFile !== undefined) return isSocketUnresponsive(socketFile) ? 'unresponsive' : 'responsive';
    if (entry?.isReady === true) return 'unresponsive';
    if (podSocketDirectories(vmi, this.#place.podsDir).length === 0) return 'unresponsive';
    const waitedMs = entry === undefined ? 0 : this.#deps.now() - entry.notInitializedSinceMs;
    return waitedMs > LAUNCHER_START_LIMIT_MS ? 'unresponsive' : 'not-initialized';
  }

  /** Starts the clock of a launcher that is not there yet, and waits for its socket by an event. */
  track(vmi: Vmi): void {
    const entry = this.#ensure(ownerOf(vmi));
    if (entry.isReady) return;
    const socketFile = this.#find(vmi);
    if (socketFile === undefined) {
      this.#watchFor(vmi, entry);
      return;
    }
    entry.isReady = true;
    entry.socketFile = socketFile;
  }

  /**
   * The connection to a VMI's launcher: the one that is there, or a new one with its ghost record and notify pipe.
   * Callers at the same time share one attempt.
   */
  async get(vmi: Vmi): Promise<CmdClient> {
    const present = this.#entries.get(vmi.metadata.uid);
    if (present?.client !== undefined) return present.client;
    if (present?.connecting !== undefined) return present.connecting;
    const socketFile = findLauncherSocket(vmi, this.#place);
    const entry = this.#ensure(ownerOf(vmi));
    entry.connecting = this.#open(entry, socketFile, isNonRoot(vmi)).finally(() => {
      entry.connecting = undefined;
    });
    return entry.connecting;
  }

  /** As {@link get}, and answered to a ping. */
  async getVerified(vmi: Vmi): Promise<CmdClient> {
    const client = await this.get(vmi);
    unwrap(await client.ping());
    return client;
  }

  /** Takes over a launcher that an earlier handler has left a record of. */
  async adopt(record: GhostRecord, wasNonRoot: boolean): Promise<CmdClient> {
    const entry = this.#ensure(record);
    if (entry.client !== undefined) return entry.client;
    entry.connecting ??= this.#open(entry, record.socketFile, wasNonRoot).finally(() => {
      entry.connecting = undefined;
    });
    return entry.connecting;
  }

  /** Ends connection and pipe of a UID; its record goes with the final clean-up only. Safe to repeat. */
  async close(uid: string): Promise<void> {
    const entry = this.#entries.get(uid);
    if (entry === undefined || uid === '') return;
    this.#entries.delete(uid);
    await this.#release(entry);
  }

  /** Forgets a VMI: connection, pipe and ghost record. */
  async forget(owner: LauncherOwner): Promise<void> {
    if (owner.uid === '') return;
    await this.close(owner.uid);
    this.#deps.records.remove(objectKey(owner), owner.uid);
    this.#deps.eras?.forget(owner.uid);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const entries = [...this.#entries.values()];
    this.#entries.clear();
    await Promise.allSettled(entries.map((entry) => this.#release(entry)));
  }

  #ensure(owner: LauncherOwner): Entry {
    const present = this.#entries.get(owner.uid);
    if (present !== undefined) return present;
    const entry: Entry = {
      owner: { namespace: owner.namespace, name: owner.name, uid: owner.uid },
      isReady: false,
      notInitializedSinceMs: this.#deps.now(),
      socketFile: undefined,
      client: undefined,
      pipe: undefined,
      connecting: undefined,
      lost: undefined,
      watcher: undefined,
      stop: new AbortController(),
    };
    this.#entries.set(owner.uid, entry);
    return entry;
  }

  #find(vmi: Vmi): string | undefined {
    try {
      return findLauncherSocket(vmi, this.#place);
    } catch {
      return undefined;
    }
  }

  async #open(entry: Entry, socketFile: string, nonRoot: boolean): Promise<CmdClient> {
    const { records, connect, eras, now } = this.#deps;
    records.add({ ...entry.owner, socketFile });
    const { uid } = entry.owner;
    eras?.begin(uid, socketFile);
    const client = await connect(socketFile, entry.stop.signal, (rpc, result) => eras?.noteResult(uid, rpc, result));
    try {
      entry.pipe = await this.#openPipe(entry.owner, socketFile, nonRoot);
      entry.stop.signal.throwIfAborted();
    } catch (error) {
      client.close();
      await entry.pipe?.[Symbol.asyncDispose]();
      entry.pipe = undefined;
      throw error;
    }
    this.#unwatch(entry);
    entry.isReady = true;
    entry.notInitializedSinceMs = now();
    entry.socketFile = socketFile;
    entry.client = client;
    entry.lost = client.onConnectionLost(() => void this.#confirmLoss(entry, client, socketFile));
    return client;
  }

  async #openPipe(owner: LauncherOwner, socketFile: string, nonRoot: boolean): Promise<AsyncDisposable> {
    let launcher: Isolation;
    try {
      launcher = await this.#deps.detectIsolation(socketFile);
    } catch (error) {
      throw new HandlerError('NotifyPipe', `${PIPE_PREFIX}${errorText(error)}`, { cause: error });
    }
    return this.#deps.openPipe(owner, launcher, nonRoot);
  }

  /**
   * A connection can end for other reasons: a launcher is gone when its socket refuses, again and again. One that takes
   * a connection has to answer as well, since a dying process may close its connections before it stops listening.
   */
  async #confirmLoss(entry: Entry, client: CmdClient, socketFile: string): Promise<void> {
    let refusals = 0;
    for (let i = 0; i < MAX_LOSS_CHECKS && refusals < CONFIRMED_REFUSALS; i += 1) {
      if (i > 0) await sleep(LOSS_CHECK_STEP_MS);
      if (entry.stop.signal.aborted) return;
      const isGone = (await dialSocket(socketFile)) === 'gone';
      refusals = isGone ? refusals + 1 : 0;
      if (!isGone && (await client.ping(undefined, { timeoutMs: LOSS_PING_MS })).ok) return;
    }
    const record = this.#deps.records.get(objectKey(entry.owner));
    if (refusals < CONFIRMED_REFUSALS || entry.stop.signal.aborted || record?.uid !== entry.owner.uid) return;
    this.#deps.onGone?.(record);
  }

  #watchFor(vmi: Vmi, entry: Entry): void {
    if (entry.watcher !== undefined) return;
    const [directory] = podSocketDirectories(vmi, this.#place.podsDir);
    if (directory === undefined) return;
    const key = objectKey(vmi.metadata);
    try {
      const watcher = watch(directory, (_event, name) => {
        if (name !== LAUNCHER_SOCKET) return;
        this.#unwatch(entry);
        this.#deps.onSocket?.(key);
      });
      watcher.on('error', () => this.#unwatch(entry));
      entry.watcher = watcher;
    } catch (error) {
      this.#deps.log.warn({ reason: errorText(error) }, `cannot watch ${path.basename(directory)} of ${key}`);
    }
  }

  #unwatch(entry: Entry): void {
    entry.watcher?.close();
    entry.watcher = undefined;
  }

  async #release(entry: Entry): Promise<void> {
    entry.stop.abort();
    this.#unwatch(entry);
    entry.lost?.[Symbol.dispose]();
    entry.client?.close();
    try {
      await entry.pipe?.[Symbol.asyncDispose]();
    } catch (error) {
      this.#deps.log.warn({ reason: errorText(error) }, 'failed to close the notify pipe');
    }
  }
}
