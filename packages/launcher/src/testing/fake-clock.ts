import type { Clock } from '../config/clock.ts';

interface Sleeper {
  readonly atMs: number;
  readonly wake: () => void;
}

/** A clock that moves only when it is told to. */
export interface FakeClock extends Clock {
  /** Lets everything that is ready run. */
  settle(): Promise<void>;
  /** Moves on by `ms`, waking sleepers in their order; everything that is ready runs before the next step. */
  advance(ms: number): Promise<void>;
  /** Moves on until the promise settles. */
  until<T>(promise: Promise<T>): Promise<T>;
}

const SETTLE_ROUNDS = 4;
/** How long file operations that do not end are waited for, in real time: a busy machine is slow with them. */
const SETTLE_LIMIT_MS = 10_000;

function isReadingFiles(): boolean {
  return process.getActiveResourcesInfo().some((resource) => resource.startsWith('FSReq'));
}

/** Creates a clock at a time. */
export function createFakeClock(startMs: number): FakeClock {
  let nowMs = startMs;
  const sleepers = new Set<Sleeper>();
  async function settle(): Promise<void> {
    const deadlineAtMs = performance.now() + SETTLE_LIMIT_MS;
    for (let quiet = 0; quiet < SETTLE_ROUNDS && performance.now() < deadlineAtMs;) {
      await new Promise((resolve) => setImmediate(resolve));
      quiet = isReadingFiles() ? 0 : quiet + 1;
    }
  }
  function next(): Sleeper | undefined {
    return [...sleepers].reduce<Sleeper | undefined>(
      (first, sleeper) => (first === undefined || sleeper.atMs < first.atMs ? sleeper : first),
      undefined,
    );
  }
  async function step(limitMs: number): Promise<boolean> {
    await settle();
    const sleeper = next();
    if (sleeper === undefined || sleeper.atMs > limitMs) return false;
    nowMs = Math.max(nowMs, sleeper.atMs);
    sleeper.wake();
    return true;
  }
  return {
    now: () => nowMs,
    sleep(ms, signal) {
      if (signal?.aborted === true) return Promise.resolve();
      return new Promise((resolve) => {
        const sleeper = { atMs: nowMs + Math.max(0, ms), wake };
        function wake(): void {
          sleepers.delete(sleeper);
          resolve();
        }
        sleepers.add(sleeper);
        signal?.addEventListener('abort', wake, { once: true });
      });
    },
    settle,
    async advance(ms) {
      const endMs = nowMs + ms;
      while (await step(endMs));
      nowMs = endMs;
      await settle();
    },
    async until(promise) {
      const outcome = { isDone: false };
      const done = (): void => {
        outcome.isDone = true;
      };
      void promise.then(done, done);
      await settle();
      while (!outcome.isDone && (await step(Infinity)));
      return promise;
    },
  };
}
