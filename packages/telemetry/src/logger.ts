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

function withPosition(this: Logger, args: Parameters<LogFn>, method: LogFn, level: number): void {
  const label = this.levels.labels[level] ?? 'info';
  const caller = (this as unknown as Record<string, LogFn>)[label] ?? method;
  const pos = callerOf(caller);
  const [first, ...rest] = args as unknown as [unknown, ...string[]];
  if (typeof first === 'string') method.apply(this, [{ pos }, first, ...rest] as unknown as Parameters<LogFn>);
  else if (first instanceof Error)
    method.apply(this, [{ pos, reason: first }, ...rest] as unknown as Parameters<LogFn>);
  else method.apply(this, [{ pos, ...(first as object) }, ...rest] as unknown as Parameters<LogFn>);
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
      hooks: { logMethod: withPosition },
    },
    options.destination ?? pino.destination({ fd: 2, sync: true }),
  );
}
