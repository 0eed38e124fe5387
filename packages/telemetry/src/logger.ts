import { pino } from 'pino';
import type { DestinationStream, LogFn, Logger as PinoLogger } from 'pino';
import { callerOf } from './caller.ts';
import { nowMicroseconds, renderTimestamp } from './timestamp.ts';

export type Logger = PinoLogger;

/** KubeVirt's verbosity when none is given. */
export const VERBOSITY_DEFAULT = 2;

export interface LoggerOptions {
  /** KubeVirt verbosity: 2 and less shows `info` and above, 3 adds `debug`, 4 and more adds `trace`. */
  readonly verbosity?: number;
  /** Where lines go; standard error when absent. */
  readonly destination?: DestinationStream;
  /** Turns `file:line:column` of what runs into `file:line` of its source, for bundles. */
  readonly resolvePosition?: (place: string) => string;
}

const LEVELS: Readonly<Record<number, string>> = {
  10: 'info',
  20: 'info',
  30: 'info',
  40: 'warning',
  50: 'error',
  60: 'fatal',
};

function levelOf(verbosity: number): 'info' | 'debug' | 'trace' {
  if (verbosity >= 4) return 'trace';
  return verbosity === 3 ? 'debug' : 'info';
}

type LogMethod = (this: Logger, args: Parameters<LogFn>, method: LogFn, level: number) => void;

/** Fields of a call; a span brings the place where it was started. */
function fieldsOf(first: unknown): { readonly pos?: string; readonly reason?: unknown } {
  if (typeof first === 'string') return {};
  return first instanceof Error ? { reason: first } : (first as object);
}

function withoutColumn(place: string): string {
  return place.replace(/:\d+$/, '');
}

function withPosition(resolve: (place: string) => string): LogMethod {
  return function addPosition(args, method, level) {
    const label = this.levels.labels[level] ?? 'info';
    const caller = (this as unknown as Record<string, LogFn>)[label] ?? method;
    const [first, ...rest] = args as unknown as [unknown, ...string[]];
    const fields = fieldsOf(first);
    const pos = resolve(fields.pos ?? callerOf(caller));
    const texts = typeof first === 'string' ? [first, ...rest] : rest;
    method.apply(this, [{ ...fields, pos }, ...texts] as unknown as Parameters<LogFn>);
  };
}

/**
 * A logger that writes KubeVirt's JSON lines: `component`, `level`, `timestamp` in microseconds, `pos`, `msg`, and
 * `reason` for errors.
 *
 * A line goes out synchronously, so that the last words of a dying process are not lost.
 *
 * @param component `virt-handler`, `virt-launcher`, ...
 * @source KubeVirt v1.9.0 staging client-go log package
 */
export function createLogger(component: string, options: LoggerOptions = {}): Logger {
  return pino(
    {
      base: { component },
      messageKey: 'msg',
      errorKey: 'reason',
      level: levelOf(options.verbosity ?? VERBOSITY_DEFAULT),
      timestamp: () => `,"timestamp":"${renderTimestamp(nowMicroseconds())}"`,
      formatters: { level: (_label, n) => ({ level: LEVELS[n] ?? 'info' }) },
      serializers: { reason: (e: unknown) => (e instanceof Error ? e.message : e) },
      hooks: { logMethod: withPosition(options.resolvePosition ?? withoutColumn) },
    },
    options.destination ?? pino.destination({ fd: 2, sync: true }),
  );
}
