import type { Clock } from './clock.ts';

/** What `within` gives for work that is not done in time. */
export const TOO_LATE = Symbol('too late');

/** Waits for work at most `ms`; it may go on unobserved, and what becomes of it then is dropped. */
export async function within<T>(clock: Clock, ms: number, work: Promise<T>): Promise<T | typeof TOO_LATE> {
  const timer = new AbortController();
  const late = clock.sleep(ms, timer.signal).then((): typeof TOO_LATE => TOO_LATE);
  try {
    return await Promise.race([work, late]);
  } finally {
    timer.abort();
    work.catch(() => undefined);
  }
}
