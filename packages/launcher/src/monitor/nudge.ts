import type { Clock } from '../config/clock.ts';

/** A pause that can be cut short when something happened. */
export interface Nudge {
  /** Ends the pause of whoever waits, or lets the next one not wait at all. */
  nudge(): void;
  /** Waits for a nudge, but at most for `ms`. Returns true when one came. */
  wait(ms: number): Promise<boolean>;
}

/** Creates a nudge. */
export function createNudge(clock: Clock): Nudge {
  let isPending = false;
  let waiting: AbortController | undefined;
  return {
    nudge() {
      isPending = true;
      waiting?.abort();
    },
    async wait(ms) {
      if (!isPending) {
        const controller = new AbortController();
        waiting = controller;
        await clock.sleep(ms, controller.signal);
        waiting = undefined;
      }
      const wasNudged = isPending;
      isPending = false;
      return wasNudged;
    },
  };
}
