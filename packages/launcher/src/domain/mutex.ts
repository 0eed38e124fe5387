/** A lock whose holders run one after the other, in the order in which they asked. */
export interface Mutex {
  /** Runs `work` while nobody else holds the lock; its result or error is passed on. */
  run<T>(work: () => Promise<T>): Promise<T>;
}

/** Creates a free lock. */
export function createMutex(): Mutex {
  let tail: Promise<unknown> = Promise.resolve();
  return {
    run<T>(work: () => Promise<T>): Promise<T> {
      const mine = tail.then(work);
      tail = mine.catch(() => undefined);
      return mine;
    },
  };
}
