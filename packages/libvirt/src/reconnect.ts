import { setTimeout as sleep } from 'node:timers/promises';
import type { Channel } from './channel.ts';
import { LibvirtError } from './errors.ts';
import type { ReconnectPolicy } from './options.ts';

const INITIAL_DELAY_MS = 100;
const MAX_DELAY_MS = 5_000;
const GIVE_UP_AFTER_MS = 600_000;
/** A daemon is up some 50 ms after its start, and whoever waits for it has nothing else to do. */
const FIRST_OPENING_DELAY_MS = 5;
const FIRST_OPENING_MAX_DELAY_MS = 50;

/** Where a restoration stands. */
export interface RestoreAttempt {
  /** 1 for the first. */
  readonly attempts: number;
  /** In the time of `performance.now()`. */
  readonly lostAtMs: number;
}

/** Repeats openings with growing, jittered pauses, for a bounded time. */
export class Reconnector {
  readonly #policy: ReconnectPolicy;
  readonly #signal: AbortSignal;

  constructor(policy: ReconnectPolicy | false | undefined, signal: AbortSignal) {
    this.#policy = policy === false || policy === undefined ? {} : policy;
    this.#signal = signal;
  }

  /** Opens for the first time; while there is no daemon, tries again until `waitMs` are over. */
  async firstOpening(waitMs: number, signal: AbortSignal, open: () => Promise<Channel>): Promise<Channel> {
    const deadlineAtMs = performance.now() + waitMs;
    for (let delayMs = FIRST_OPENING_DELAY_MS; ; delayMs = Math.min(delayMs * 2, FIRST_OPENING_MAX_DELAY_MS)) {
      try {
        return await open();
      } catch (error) {
        const isAbsent = error instanceof LibvirtError && error.kind === 'ConnectFailed';
        if (!isAbsent || performance.now() + delayMs > deadlineAtMs) throw error;
      }
      await sleep(delayMs, undefined, { signal }).catch(() => undefined);
    }
  }

  /**
   * Opens again until it succeeds, the connection is closed, or `giveUpAfterMs` are over.
   *
   * @returns the error that it ends with, undefined when it has succeeded.
   */
  async restore(reopen: (attempt: RestoreAttempt) => Promise<void>): Promise<LibvirtError | undefined> {
    const { initialDelayMs = INITIAL_DELAY_MS, maxDelayMs = MAX_DELAY_MS } = this.#policy;
    const giveUpAfterMs = this.#policy.giveUpAfterMs ?? GIVE_UP_AFTER_MS;
    const lostAtMs = performance.now();
    for (let attempts = 1, delayMs = initialDelayMs; ; attempts++, delayMs = Math.min(delayMs * 2, maxDelayMs)) {
      await sleep(delayMs * (0.75 + Math.random() / 2), undefined, { signal: this.#signal }).catch(() => undefined);
      try {
        await reopen({ attempts, lostAtMs });
        return undefined;
      } catch (error) {
        const gapMs = performance.now() - lostAtMs;
        if (this.#signal.aborted || gapMs >= giveUpAfterMs) return gaveUp(error, gapMs, attempts);
      }
    }
  }
}

function gaveUp(error: unknown, gapMs: number, attempts: number): LibvirtError {
  const last = error instanceof Error ? error.message : String(error);
  const text = `gave up reconnecting after ${String(Math.round(gapMs))} ms and ${String(attempts)} attempts: ${last}`;
  return LibvirtError.client('Closed', text, { cause: error });
}
