import { setTimeout as sleep } from 'node:timers/promises';

/** Time as the launcher's parts see it; tests give their own. */
export interface Clock {
  now(): number;
  /** Resolves after `ms`, or at once, without an error, when the signal aborts. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

/** The machine's clock. Its timers never keep the process alive on their own. */
export const systemClock: Clock = {
  now: () => Date.now(),
  async sleep(ms, signal) {
    await sleep(ms, undefined, signal === undefined ? { ref: true } : { ref: true, signal }).catch(() => undefined);
  },
};
