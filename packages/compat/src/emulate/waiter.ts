import { CompatError } from '../errors.ts';

const DEFAULT_TIMEOUT_MS = 10_000;

/** Waits for conditions on something that says when it changed. */
export interface Waiter {
  /** To be called after every change. */
  changed(): void;
  /** @throws {CompatError} `WaitTimeout`. */
  waitFor(what: string, condition: () => boolean, timeoutMs?: number): Promise<void>;
}

/** Creates a waiter. */
export function createWaiter(describe: () => string): Waiter {
  const waiting = new Set<() => void>();
  return {
    changed: () => {
      for (const check of [...waiting]) check();
    },
    waitFor: (what, condition, timeoutMs = DEFAULT_TIMEOUT_MS) =>
      new Promise((resolve, reject) => {
        const finish = (run: () => void): void => {
          clearTimeout(timer);
          waiting.delete(check);
          run();
        };
        const check = (): void => {
          try {
            if (condition()) finish(resolve);
          } catch (caught) {
            finish(() => reject(caught instanceof Error ? caught : new Error(String(caught))));
          }
        };
        const timer = setTimeout(() => {
          const text = `waited ${timeoutMs} ms in vain for ${what}; ${describe()}`;
          finish(() => reject(new CompatError('WaitTimeout', text)));
        }, timeoutMs);
        waiting.add(check);
        check();
      }),
  };
}
