import type { Clock } from '../config/clock.ts';

/** A value that is computed again only when it has become too old. */
export interface TimedCache<T> {
  /**
   * The value, computed anew when the last success is older than the lifetime. One computation at a time.
   *
   * @throws the error of the computation; the old value stays for nobody, the next call tries again.
   */
  get(): Promise<T>;
}

/** Creates an empty cache. `@source KubeVirt v1.9.0 tools/cache/time-defined-cache.go` */
export function createTimedCache<T>(clock: Clock, lifetimeMs: number, compute: () => Promise<T>): TimedCache<T> {
  let last: { readonly value: T; readonly atMs: number } | undefined;
  let running: Promise<T> | undefined;
  async function refresh(): Promise<T> {
    const value = await compute();
    last = { value, atMs: clock.now() };
    return value;
  }
  return {
    async get() {
      if (last !== undefined && clock.now() - last.atMs <= lifetimeMs) return last.value;
      running ??= refresh().finally(() => {
        running = undefined;
      });
      return running;
    },
  };
}
