import * as fs from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { CmdClient } from '@virtwire/shared-proto';
import type { Logger } from '@virtwire/telemetry';
import { errorText } from '../errors.ts';
import type { GhostRecord, GhostRecords } from '../ghost-records/ghost-records.ts';
import { dialSocket } from '../launchers/dial.ts';
import type { ConnectLauncher } from '../launchers/launcher.ts';
import type { Launchers } from '../launchers/launchers.ts';
import { markUnresponsive } from '../launchers/sockets.ts';
import { apiTime, objectKey } from '../model.ts';
import { askDomain } from './ask.ts';
import { forEachBounded } from './bounded.ts';
import { goneDomain, unknownDomain } from './domain-object.ts';
import type { DomainStore } from './domain-store.ts';
import { createWatchdog, watchdogPeriodMs } from './watchdog.ts';
import type { Watchdog } from './watchdog.ts';

/** What the domain watch needs. */
export interface DomainWatchDeps {
  readonly store: DomainStore;
  readonly records: GhostRecords;
  readonly launchers: Launchers;
  readonly connect: ConnectLauncher;
  /** Says whether the launcher of a VMI runs without root rights; it decides who owns the pipe. */
  readonly isNonRoot: (record: GhostRecord) => boolean;
  readonly now: () => number;
  readonly log: Logger;
}

/** Periods of the domain watch. */
export interface DomainWatchConfig {
  readonly watchdogTimeoutMs: number;
  readonly resyncPeriodMs: number;
}

const PROBES_AT_ONCE = 16;
/** Dial, version check and call of one probe. */
const DIAL_LIMIT_MS = 5_000;
const STOP_LIMIT_MS = 1_000;
/** An adopted launcher that does not answer is asked again, at growing distances. */
const FIRST_RETRY_MS = 250;
const MAX_RETRY_MS = 10_000;
/** A socket that refuses for this long at a start belongs to a launcher that died while no handler watched. */
const REFUSED_AT_START_MS = 2_000;

/**
 * Fills the domain store: asks every known launcher at start, again at each resync, and notices those that die.
 *
 * Launchers are asked side by side with a limit each, so that one that hangs delays nobody.
 */
export class DomainWatch implements AsyncDisposable {
  readonly #deps: DomainWatchDeps;
  readonly #config: DomainWatchConfig;
  readonly #stop = new AbortController();
  readonly #tasks = new Set<Promise<void>>();
  readonly #hung = new Set<string>();
  readonly #watchdog: Watchdog;

  constructor(deps: DomainWatchDeps, config: DomainWatchConfig) {
    this.#deps = deps;
    this.#config = config;
    this.#watchdog = createWatchdog(config.watchdogTimeoutMs);
  }

  /**
   * Begins with the launchers of all ghost records. Resolves at once: a domain stays unknown until its launcher was
   * heard. Pipes are put back before the launchers are asked, so that no event falls between.
   */
  start(): void {
    const records = this.#deps.records.list();
    for (const record of records) this.#deps.store.noteUnasked(objectKey(record));
    this.#deps.log.info({ launchers: records.length }, 'Synchronizing domains');
    this.#run(forEachBounded(records, PROBES_AT_ONCE, (record) => this.#adopt(record)));
    this.#run(this.#every('resync of domains', this.#config.resyncPeriodMs, () => this.resync()));
    const periodMs = watchdogPeriodMs(this.#config.watchdogTimeoutMs);
    this.#run(this.#every('watchdog of launchers', periodMs, () => this.checkSockets()));
  }

  /** Asks every launcher once more; errors are only logged. */
  async resync(): Promise<void> {
    this.#deps.log.info('resyncing virt-launcher domains');
    await forEachBounded(this.#deps.records.list(), PROBES_AT_ONCE, (record) => this.#resyncOne(record));
  }

  /** Declares a launcher dead: its domain is gone, and its socket is marked. */
  markGone(record: GhostRecord): void {
    const { log, store, now } = this.#deps;
    if (this.#deps.records.get(objectKey(record))?.uid !== record.uid) return;
    log.warn(`detected unresponsive virt-launcher command socket (${record.socketFile}) for domain`);
    try {
      markUnresponsive(record.socketFile);
    } catch (error) {
      log.warn({ reason: errorText(error) }, 'failed to mark the socket of a dead launcher');
    }
    store.upsert(goneDomain(record, apiTime(now()), true));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    // A probe of a launcher that hangs ends with its connection, which is closed next.
    await Promise.race([Promise.allSettled(this.#tasks), sleep(STOP_LIMIT_MS, undefined, { ref: false })]);
  }

  #run(task: Promise<void>): void {
    const settled = task.catch((error: unknown) => {
      if (!this.#stop.signal.aborted) this.#deps.log.error({ reason: errorText(error) }, 'domain watch failed');
    });
    this.#tasks.add(settled);
    void settled.then(() => this.#tasks.delete(settled));
  }

  /** Goes on after a round that failed; the same failure is said once until a round succeeds. */
  async #every(what: string, periodMs: number, work: () => Promise<void>): Promise<void> {
    let said: string | undefined;
    for (;;) {
      await this.#sleep(periodMs);
      if (this.#isStopped()) return;
      try {
        await work();
        said = undefined;
      } catch (error) {
        const reason = errorText(error);
        if (reason !== said) this.#deps.log.error({ reason }, `${what} failed, going on`);
        said = reason;
      }
    }
  }

  #isStopped(): boolean {
    return this.#stop.signal.aborted;
  }

  async #sleep(ms: number): Promise<void> {
    await sleep(ms, undefined, { signal: this.#stop.signal, ref: false }).catch(() => undefined);
  }

  /** @source KubeVirt v1.9.0 pkg/virt-handler/cache/domain-watcher.go (listAllKnownDomains) */
  async #adopt(record: GhostRecord): Promise<void> {
    const { store, log, now } = this.#deps;
    const key = objectKey(record);
    if (!fs.existsSync(record.socketFile)) {
      log.warn(`detected stale domain from ghost record ${key}`);
      store.upsert(goneDomain(record, apiTime(now()), false));
      return;
    }
    try {
      await this.#ask(record);
    } catch (error) {
      const text = `failed to connect to cmd client socket ${record.socketFile}, preserving domain with Unknown status`;
      log.warn({ reason: errorText(error) }, text);
      if (!store.isKnown(key)) store.upsert(unknownDomain(record));
      this.#run(this.#askUntilKnown(record));
    }
  }

  async #ask(record: GhostRecord): Promise<void> {
    const { store, launchers, isNonRoot } = this.#deps;
    const key = objectKey(record);
    const client = await launchers.adopt(record, isNonRoot(record));
    const before = store.get(key);
    const domain = await askDomain(client, record);
    // The pipe is open already: an event that came meanwhile is newer than the answer.
    if (store.get(key) !== before) return;
    if (domain !== undefined) store.upsert(domain);
    else if (store.get(key)?.Status.Status === 'Unknown') store.delete(key);
    else store.noteAbsent(key);
  }

  /** Goes on asking a launcher whose domain is unknown, until it answers or is known to be gone. */
  async #askUntilKnown(record: GhostRecord): Promise<void> {
    const key = objectKey(record);
    let refusedSinceMs: number | undefined;
    for (let waitMs = FIRST_RETRY_MS; !this.#isStopped(); waitMs = Math.min(waitMs * 2, MAX_RETRY_MS)) {
      await this.#sleep(waitMs);
      if (this.#isStopped() || !this.#isUnknown(record)) return;
      try {
        await this.#ask(record);
        return;
      } catch (error) {
        this.#deps.log.debug({ reason: errorText(error) }, `domain of ${key} is still unknown`);
      }
      const isRefused = (await dialSocket(record.socketFile, DIAL_LIMIT_MS)) === 'gone';
      refusedSinceMs = isRefused ? (refusedSinceMs ?? this.#deps.now()) : undefined;
      if (refusedSinceMs !== undefined && this.#deps.now() - refusedSinceMs >= REFUSED_AT_START_MS) {
        this.markGone(record);
        return;
      }
      if (refusedSinceMs !== undefined) waitMs = FIRST_RETRY_MS;
    }
  }

  #isUnknown(record: GhostRecord): boolean {
    const key = objectKey(record);
    if (this.#deps.records.get(key)?.uid !== record.uid) return false;
    return this.#deps.store.get(key)?.Status.Status === 'Unknown';
  }

  async #resyncOne(record: GhostRecord): Promise<void> {
    const { store, log, launchers, connect } = this.#deps;
    const key = objectKey(record);
    const held = launchers.info(record.uid)?.client;
    let own: CmdClient | undefined;
    try {
      const client = held ?? (own = await connect(record.socketFile, this.#stop.signal));
      const before = store.get(key);
      const domain = await askDomain(client, record);
      // An event that came meanwhile is newer than the answer.
      if (store.get(key) !== before || this.#deps.records.get(key)?.uid !== record.uid) return;
      if (domain !== undefined) store.upsert(domain);
      else if (before === undefined) store.noteAbsent(key);
    } catch (error) {
      log.warn({ reason: errorText(error) }, 'failed to connect to cmd client socket during resync');
    } finally {
      own?.close();
    }
  }

  /** One round of the watchdog: dials every socket, and declares those dead that have failed for too long. */
  async checkSockets(): Promise<void> {
    const { records, launchers, now } = this.#deps;
    const failing: string[] = [];
    await forEachBounded(records.list(), PROBES_AT_ONCE, async (record) => {
      if ((await dialSocket(record.socketFile, DIAL_LIMIT_MS)) !== 'alive') failing.push(record.socketFile);
      else await this.#ping(record);
    });
    for (const uid of this.#hung) if (!launchers.info(uid)) this.#hung.delete(uid);
    for (const socket of this.#watchdog.tick(now(), failing)) {
      const record = records.findBySocket(socket);
      if (record !== undefined) this.markGone(record);
    }
  }

  /** Notices a launcher that takes connections and answers nothing; said once, and once more when it is back. */
  async #ping(record: GhostRecord): Promise<void> {
    const client = this.#deps.launchers.info(record.uid)?.client;
    if (client === undefined) return;
    const answer = await client.ping();
    const isHung = !answer.ok && answer.error.code === 'DeadlineExceeded';
    if (isHung === this.#hung.has(record.uid)) return;
    const fields = { name: record.name, namespace: record.namespace, uid: record.uid };
    if (isHung) {
      this.#hung.add(record.uid);
      this.#deps.log.warn(fields, 'virt-launcher takes connections but does not answer a ping');
    } else {
      this.#hung.delete(record.uid);
      this.#deps.log.info(fields, 'virt-launcher answers again');
    }
  }
}
