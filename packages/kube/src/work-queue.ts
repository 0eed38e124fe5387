import { systemClock } from './clock.ts';
import type { Clock } from './clock.ts';
import { createRateLimiter, DEFAULT_RATE_LIMITS } from './rate-limit.ts';
import type { RateLimiter, RateLimits } from './rate-limit.ts';

/** What a worker wants next for a key that it has done. */
export interface Requeue {
  readonly requeueAfterMs: number;
}

/** Does the work of one key. A rejection is retried with back-off. */
export type Work = (key: string, signal: AbortSignal) => Promise<Requeue | undefined> | Promise<void>;

/** How a queue is built; all of it has defaults. */
export interface WorkQueueOptions {
  readonly clock?: Clock;
  readonly random?: () => number;
  readonly limits?: Partial<RateLimits>;
  /** Keys that may be known at a time (ready, delayed or in work); more are refused. 100,000 by default. */
  readonly maxKeys?: number;
  /** Told each failure, before the key is queued again. */
  readonly onFailure?: (key: string, error: unknown, failures: number) => void;
  /** Told each key that was refused because the queue is full. */
  readonly onRefused?: (key: string) => void;
}

/** Parallel workers over a queue; see {@link WorkQueue.run}. */
export interface RunOptions {
  readonly workers: number;
  /** Ends the run; also handed to the work, combined with the queue's own end. */
  readonly signal: AbortSignal;
}

/**
 * A queue of keys for a controller: a key that is added again before its turn is one entry, a key that is added while
 * it is in work is done once more afterwards, and never twice at the same time.
 *
 * @source client-go util/workqueue/queue.go:140
 */
export class WorkQueue {
  readonly #clock: Clock;
  readonly #limiter: RateLimiter;
  readonly #options: WorkQueueOptions;
  readonly #ready = new Set<string>();
  readonly #working = new Set<string>();
  readonly #again = new Set<string>();
  readonly #delayed = new Map<string, { readonly dueAtMs: number; readonly cancel: () => void }>();
  readonly #idle: (() => void)[] = [];
  readonly #stop = new AbortController();
  #wakeUps: (() => void)[] = [];
  #accepting = true;

  constructor(options: WorkQueueOptions = {}) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    const limits = { ...DEFAULT_RATE_LIMITS, ...options.limits };
    this.#limiter = createRateLimiter(this.#clock, options.random ?? Math.random, limits);
  }

  /** Keys that wait for a worker now. */
  get length(): number {
    return this.#ready.size;
  }

  /** Keys known in any form. */
  get known(): number {
    return new Set([...this.#ready, ...this.#working, ...this.#delayed.keys()]).size;
  }

  /** Queues a key for now; a delay that it had is dropped. Returns false if it was refused. */
  add(key: string): boolean {
    if (!this.#admits(key)) return false;
    this.#delayed.get(key)?.cancel();
    this.#delayed.delete(key);
    if (this.#working.has(key)) {
      this.#again.add(key);
      return true;
    }
    this.#ready.add(key);
    this.#wakeUps.shift()?.();
    return true;
  }

  /** Queues a key for later; if it is due earlier already, that stays. Returns false if it was refused. */
  addAfter(key: string, delayMs: number): boolean {
    if (delayMs <= 0) return this.add(key);
    if (!this.#admits(key)) return false;
    const dueAtMs = this.#clock.nowMs() + delayMs;
    const present = this.#delayed.get(key);
    if (present !== undefined && present.dueAtMs <= dueAtMs) return true;
    present?.cancel();
    const cancel = this.#clock.after(delayMs, () => {
      this.#delayed.delete(key);
      this.add(key);
    });
    this.#delayed.set(key, { dueAtMs, cancel });
    return true;
  }

  /** Queues a key after its back-off: 5 ms × 2^failures up to 1000 s, and never faster than the common bucket. */
  addRateLimited(key: string): boolean {
    return this.addAfter(key, this.#limiter.nextDelayMs(key));
  }

  /** Clears the failure count of a key. */
  forget(key: string): void {
    this.#limiter.forget(key);
  }

  /** Failures of a key since it was last forgotten. */
  failures(key: string): number {
    return this.#limiter.failures(key);
  }

  /** Runs workers until the signal aborts or {@link shutDown} is called; resolves when all of them have stopped. */
  async run(work: Work, options: RunOptions): Promise<void> {
    const signal = AbortSignal.any([options.signal, this.#stop.signal]);
    const wakeAll = (): void => {
      for (const wake of this.#wakeUps.splice(0)) wake();
    };
    signal.addEventListener('abort', wakeAll, { once: true });
    try {
      await Promise.all(Array.from({ length: options.workers }, () => this.#worker(work, signal)));
    } finally {
      signal.removeEventListener('abort', wakeAll);
    }
  }

  /**
   * Takes no more keys. With `drain`, what is ready or in work is done first (delayed keys are dropped); the wait is
   * bounded by the signal. Then the workers end, and their work is told so by its signal.
   */
  async shutDown(options: { readonly drain?: AbortSignal } = {}): Promise<void> {
    this.#accepting = false;
    for (const { cancel } of this.#delayed.values()) cancel();
    this.#delayed.clear();
    if (options.drain !== undefined) await this.#drained(options.drain);
    this.#ready.clear();
    this.#stop.abort();
  }

  #admits(key: string): boolean {
    if (!this.#accepting) return false;
    const isKnown = this.#ready.has(key) || this.#working.has(key) || this.#delayed.has(key);
    // An upper bound of what `known` counts, without counting.
    const atMost = this.#ready.size + this.#working.size + this.#delayed.size;
    if (isKnown || atMost < (this.#options.maxKeys ?? 100_000)) return true;
    this.#options.onRefused?.(key);
    return false;
  }

  async #worker(work: Work, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const [key] = this.#ready;
      if (key === undefined) {
        await new Promise<void>((resolve) => this.#wakeUps.push(resolve));
        continue;
      }
      this.#ready.delete(key);
      this.#working.add(key);
      await this.#once(key, work, signal);
      this.#working.delete(key);
      if (this.#again.delete(key)) {
        this.#ready.add(key);
        this.#wakeUps.shift()?.();
      }
      if (this.#ready.size === 0 && this.#working.size === 0) for (const resolve of this.#idle.splice(0)) resolve();
    }
  }

  async #once(key: string, work: Work, signal: AbortSignal): Promise<void> {
    try {
      const result = await work(key, signal);
      this.forget(key);
      if (result !== undefined) this.addAfter(key, result.requeueAfterMs);
    } catch (error) {
      if (signal.aborted) return;
      this.addRateLimited(key);
      this.#options.onFailure?.(key, error, this.failures(key));
    }
  }

  async #drained(limit: AbortSignal): Promise<void> {
    if (limit.aborted || (this.#ready.size === 0 && this.#working.size === 0)) return;
    await new Promise<void>((resolve) => {
      this.#idle.push(resolve);
      limit.addEventListener('abort', () => resolve(), { once: true });
    });
  }
}
