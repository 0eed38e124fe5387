/** Time as the queue sees it; a test gives its own. */
export interface Clock {
  /** Milliseconds that never go back. */
  nowMs(): number;
  /** Calls `action` once after a delay; the returned function calls it off. */
  after(delayMs: number, action: () => void): () => void;
}

/** Longest delay that Node's timers take; longer ones are cut to it. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/** The machine's time. Timers do not keep the process alive. */
export const systemClock: Clock = {
  nowMs: () => performance.now(),
  after: (delayMs, action) => {
    const timer = setTimeout(action, Math.min(delayMs, MAX_TIMER_MS));
    timer.unref();
    return () => clearTimeout(timer);
  },
};
