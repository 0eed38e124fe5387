import type { CompatProcess } from './process.ts';

/** Waits for SIGTERM or SIGINT. */
export function untilTold({ signals }: CompatProcess): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      signals.off('SIGTERM', done);
      signals.off('SIGINT', done);
      resolve();
    };
    signals.on('SIGTERM', done);
    signals.on('SIGINT', done);
  });
}
