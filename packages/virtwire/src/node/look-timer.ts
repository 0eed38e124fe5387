/** Editors write a file in several steps. */
const SETTLE_MS = 150;
/** On a busy node events never settle: a look is due this long after the first. */
const MAX_SETTLE_MS = 1_000;
/** A look that nobody asked for comes this long after the last. */
const LOOK_AGAIN_MS = 2_000;

/** Looks once events have settled, and every now and then without any; one look at a time. */
export class LookTimer implements Disposable {
  readonly #look: () => Promise<void>;
  #timer: NodeJS.Timeout | undefined;
  #askedAtMs: number | undefined;
  #isLooking = false;
  #isDue = false;
  #isStopped = false;

  /** @param look must not reject. */
  constructor(look: () => Promise<void>) {
    this.#look = look;
  }

  /** Looks at once. */
  start(): void {
    this.#set(0);
  }

  /** Something has happened: looks when no more comes for a moment, at the latest after a second. */
  soon(): void {
    const nowMs = Date.now();
    this.#askedAtMs ??= nowMs;
    this.#set(Math.max(0, Math.min(SETTLE_MS, this.#askedAtMs + MAX_SETTLE_MS - nowMs)));
  }

  [Symbol.dispose](): void {
    this.#isStopped = true;
    clearTimeout(this.#timer);
  }

  #set(afterMs: number): void {
    if (this.#isStopped) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#lookNow(), afterMs);
  }

  async #lookNow(): Promise<void> {
    this.#timer = undefined;
    this.#askedAtMs = undefined;
    if (this.#isLooking) {
      this.#isDue = true;
      return;
    }
    this.#isLooking = true;
    try {
      await this.#look();
    } finally {
      this.#isLooking = false;
      this.#planNext();
    }
  }

  #planNext(): void {
    if (this.#isDue) this.#set(0);
    else if (this.#timer === undefined) this.#set(LOOK_AGAIN_MS);
    this.#isDue = false;
  }
}
