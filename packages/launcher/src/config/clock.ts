import { setTimeout as sleep } from 'node:timers/promises';

/** Time as the launcher's parts see it; tests give their own. */
export interface Clock {
  now(): number;
  /** Resolves after `ms`, or at once, without an error, when the signal aborts. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

/** A timer of Node cannot wait longer, 25 days, and does not wait at all when it is asked to. Requests may ask for years. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** The machine's clock. */
export const systemClock: Clock = {
  now: () => Date.now(),
  async sleep(ms, signal) {
    const options = signal === undefined ? { ref: true } : { ref: true, signal };
    let leftMs = Math.max(0, ms);
    do {
      await sleep(Math.min(leftMs, LONGEST_TIMER_MS), undefined, options).catch(() => undefined);
      leftMs -= LONGEST_TIMER_MS;
    } while (leftMs > 0 && signal?.aborted !== true);
  },
};
