import { LauncherError } from '../errors.ts';

/** A lock whose holders run one after the other, in the order in which they asked. */
export interface Mutex {
  /**
   * Runs `work` while nobody else holds the lock; its result or error is passed on.
   *
   * @throws {LauncherError} `Busy` at once when too many wait already.
   */
  run<T>(work: () => Promise<T>): Promise<T>;
}

/**
 * More than a handler sends before it gives up: it repeats a request about every 20 s, while a call of libvirt ends
 * after two minutes.
 */
const MOST_WAITING = 32;

/** Creates a free lock. */
export function createMutex(mostWaiting = MOST_WAITING): Mutex {
  let tail: Promise<unknown> = Promise.resolve();
  let waiting = 0;
  return {
    run<T>(work: () => Promise<T>): Promise<T> {
      if (waiting > mostWaiting) {
        const message = 'the domain is busy, and too many requests wait for it already';
        return Promise.reject(new LauncherError('Busy', message));
      }
      waiting++;
      const mine = tail.then(work).finally(() => waiting--);
      tail = mine.catch(() => undefined);
      return mine;
    },
  };
}
