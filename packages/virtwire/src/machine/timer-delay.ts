/** A timer of Node cannot wait longer, 25 days, and does not wait at all when it is asked to. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/**
 * A delay that Node's timers keep: grace periods may be years. Whoever waits longer has to look again when the timer
 * fires.
 */
export function timerDelay(ms: number): number {
  return Math.min(Math.max(0, ms), LONGEST_TIMER_MS);
}
