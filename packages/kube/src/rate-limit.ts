import type { Clock } from './clock.ts';

/** Figures of {@link createRateLimiter}. */
export interface RateLimits {
  /** First delay of a key that failed; it doubles with each further failure. */
  readonly baseDelayMs: number;
  readonly maxDelayMs: number;
  /** Up to this part of a key's delay is added at random, so that keys that failed together part. */
  readonly jitter: number;
  /** Retries per second of all keys together, and how many may come at once. */
  readonly ratePerSecond: number;
  readonly burst: number;
}

/** client-go's default controller limits, plus jitter. @source client-go util/workqueue/default_rate_limiters.go:41 */
export const DEFAULT_RATE_LIMITS: RateLimits = {
  baseDelayMs: 5,
  maxDelayMs: 1_000_000,
  jitter: 0.1,
  ratePerSecond: 10,
  burst: 100,
};

/** Says how long the next try of a key has to wait. */
export interface RateLimiter {
  /** Counts a failure of the key and takes a place in the common bucket; the longer of both delays. */
  nextDelayMs(key: string): number;
  forget(key: string): void;
  failures(key: string): number;
}

/** @param random as `Math.random`. */
export function createRateLimiter(clock: Clock, random: () => number, limits: RateLimits): RateLimiter {
  const failures = new Map<string, number>();
  let tokens = limits.burst;
  let countedAtMs = clock.nowMs();

  const takeToken = (): number => {
    const nowMs = clock.nowMs();
    tokens = Math.min(limits.burst, tokens + ((nowMs - countedAtMs) / 1_000) * limits.ratePerSecond);
    countedAtMs = nowMs;
    tokens -= 1;
    return tokens >= 0 ? 0 : (-tokens / limits.ratePerSecond) * 1_000;
  };

  return {
    nextDelayMs(key) {
      const count = failures.get(key) ?? 0;
      failures.set(key, count + 1);
      const plain = limits.baseDelayMs * 2 ** Math.min(count, 60);
      const spread = plain * (1 + limits.jitter * random());
      return Math.max(Math.min(spread, limits.maxDelayMs), takeToken());
    },
    forget: (key) => void failures.delete(key),
    failures: (key) => failures.get(key) ?? 0,
  };
}
