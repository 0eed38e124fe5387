/** Retry state of one VM that is paused by an IO error. */
interface RetryState {
  lastRunMs: number;
  nextRunMs: number;
  waitMs: number;
  hasFailed: boolean;
}

/** Decides when the sync of a VM with an IO error may be sent again. */
export interface IoErrorRetry {
  /** Milliseconds to wait before the next try; 0 = go on now. Each call counts as a failure seen at `nowMs`. */
  delayMs(uid: string, nowMs: number): number;
  /** Forgets VMs that have run well for a while. */
  sweep(nowMs: number): void;
  readonly size: number;
}

const INITIAL_WAIT_MS = 10_000;
const MAX_WAIT_MS = 180_000;
const FAILURE_WINDOW_MS = 30_000;

/**
 * Back-off for VMs that are paused by an IO error: 10 s doubling to 3 min while the error comes back within 30 s.
 *
 * @source KubeVirt v1.9.0 pkg/virt-handler/retry_manager.go
 */
export function createIoErrorRetry(): IoErrorRetry {
  const states = new Map<string, RetryState>();
  const begin = (uid: string, nowMs: number): number => {
    states.set(uid, {
      lastRunMs: nowMs,
      nextRunMs: nowMs + INITIAL_WAIT_MS,
      waitMs: INITIAL_WAIT_MS,
      hasFailed: false,
    });
    return 0;
  };
  return {
    delayMs(uid, nowMs) {
      const state = states.get(uid);
      if (state === undefined) return begin(uid, nowMs);
      if (!state.hasFailed) {
        if (nowMs > state.lastRunMs + FAILURE_WINDOW_MS) return begin(uid, nowMs);
        state.hasFailed = true;
        if (state.nextRunMs > nowMs) return state.nextRunMs - nowMs;
      }
      if (nowMs <= state.nextRunMs && state.nextRunMs > nowMs) return state.nextRunMs - nowMs;
      state.waitMs = Math.min(state.waitMs * 2, MAX_WAIT_MS);
      state.nextRunMs = nowMs + state.waitMs;
      state.lastRunMs = nowMs;
      state.hasFailed = false;
      return 0;
    },
    sweep(nowMs) {
      for (const [uid, state] of states) {
        if (!state.hasFailed && nowMs > state.lastRunMs + FAILURE_WINDOW_MS) states.delete(uid);
      }
    },
    get size() {
      return states.size;
    },
  };
}
