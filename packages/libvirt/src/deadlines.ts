/** Anything that ends by itself at a certain time. */
export interface Expiring {
  /** In the time of `performance.now()`; Infinity is never. */
  readonly deadlineAtMs: number;
  expire(): void;
}

/**
 * One timer for many deadlines. It is set for the earliest and left alone when calls end before theirs, so that a call
 * that is answered in time, nearly every call, costs no timer operation.
 */
export class Deadlines implements Disposable {
  readonly #all: () => Iterable<Expiring>;
  #timer: NodeJS.Timeout | undefined;
  #firesAtMs = Infinity;

  /** @param all what is pending when the timer fires. */
  constructor(all: () => Iterable<Expiring>) {
    this.#all = all;
  }

  /** Makes sure that the timer fires no later than at the deadline of something that is now pending. */
  add(deadlineAtMs: number, nowMs: number): void {
    if (deadlineAtMs >= this.#firesAtMs) return;
    clearTimeout(this.#timer);
    this.#firesAtMs = deadlineAtMs;
    this.#timer = setTimeout(() => this.#fire(), Math.max(0, deadlineAtMs - nowMs));
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
    this.#firesAtMs = Infinity;
  }

  #fire(): void {
    const nowMs = performance.now();
    this.#firesAtMs = Infinity;
    let earliest = Infinity;
    for (const one of [...this.#all()]) {
      // Timers may fire a fraction of a millisecond early.
      if (one.deadlineAtMs <= nowMs + 1) one.expire();
      else earliest = Math.min(earliest, one.deadlineAtMs);
    }
    if (earliest < Infinity) this.add(earliest, nowMs);
  }
}
