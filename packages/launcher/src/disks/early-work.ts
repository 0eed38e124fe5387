/** Work that starts on its own when its caller is kept busy elsewhere, so that it is done by the time it is needed. */
export interface EarlyWork {
  /** Waits for the work; does it now if it has not started. */
  finish(): Promise<void>;
  /** Calls the work off; one that has started is waited for, and its failure forgotten. */
  cancel(): Promise<void>;
}

/** Starts work after a delay unless it is asked for before. The delay does not keep the process alive. */
export function startEarlyWork(delayMs: number, work: () => Promise<void>): EarlyWork {
  let started: Promise<void> | undefined;
  const start = (): Promise<void> => (started ??= work());
  const timer = setTimeout(() => {
    // Whoever finishes it gets the failure.
    start().catch(() => undefined);
  }, delayMs);
  timer.unref();
  return {
    async finish() {
      clearTimeout(timer);
      await start();
    },
    async cancel() {
      clearTimeout(timer);
      await started?.catch(() => undefined);
    },
  };
}
