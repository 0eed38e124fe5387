import { performance } from 'node:perf_hooks';
import type { LogFn } from 'pino';
import { callerOf } from './caller.ts';
import type { Logger } from './logger.ts';

/** A step under way. End it once; later calls do nothing. */
export interface Span {
  /** Writes the line with `durationMs` and `fields`. */
  end(fields?: Readonly<Record<string, unknown>>): void;
  /** Ends the step as failed: the same line, with `reason`. */
  fail(error: unknown): void;
}

/**
 * Starts a timed step of a VM's life. Its line is written when the step ends, with the place that started it, and
 * becomes a bar of the timeline.
 *
 * @param log a logger that carries the object's fields, so that the step finds its VM.
 * @param what the step in a few words, e.g. `network phase 1`.
 */
export function startSpan(log: Logger, what: string): Span {
  const startedAtMs = performance.now();
  const pos = callerOf(startSpan);
  let isOpen = true;
  const finish = (write: LogFn, fields: Readonly<Record<string, unknown>>): void => {
    if (!isOpen) return;
    isOpen = false;
    const durationMs = Math.round((performance.now() - startedAtMs) * 1_000) / 1_000;
    write.call(log, { ...fields, pos, durationMs }, what);
  };
  return {
    end: (fields = {}) => {
      finish(log.info, fields);
    },
    fail: (error) => {
      finish(log.warn, { reason: error });
    },
  };
}
