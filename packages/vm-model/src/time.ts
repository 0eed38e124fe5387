import { VmModelError } from './errors.ts';

const RFC3339 = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})$/;
const CANONICAL = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z$/;

/** A point in time as meta/v1 prints it: RFC 3339 in UTC, whole seconds, rounded down. */
export function renderTime(epochMs: number): string {
  return `${new Date(epochMs).toISOString().slice(0, 19)}Z`;
}

/** A point in time as meta/v1 MicroTime prints it: six digits of a second. */
export function renderMicroTime(epochMs: number): string {
  return `${new Date(epochMs).toISOString().slice(0, 23)}000Z`;
}

/**
 * Reads RFC 3339 with any offset and fraction into milliseconds since 1970.
 *
 * @throws {VmModelError} `InvalidTime` with Go's text.
 */
export function parseTime(text: string): number {
  const epochMs = RFC3339.test(text) ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(epochMs)) {
    throw new VmModelError(
      'InvalidTime',
      `parsing time "${text}" as "2006-01-02T15:04:05Z07:00": cannot parse "${text}"`,
    );
  }
  return epochMs;
}

/** Go's zero time, which meta/v1 prints as null. */
export const ZERO_TIME = '0001-01-01T00:00:00Z';

/** Brings a time into the form in which meta/v1 prints it. */
export function formatGoTime(text: string): string {
  return CANONICAL.test(text) ? text : renderTime(parseTime(text));
}

const UNITS: readonly (readonly [string, number])[] = [
  ['ns', 1e-6],
  ['us', 1e-3],
  ['µs', 1e-3],
  ['μs', 1e-3],
  ['ms', 1],
  ['s', 1_000],
  ['m', 60_000],
  ['h', 3_600_000],
];
const DURATION_PART = /(\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h)/y;

/**
 * Reads a Go duration (`1h30m`, `250ms`) into milliseconds.
 *
 * @throws {VmModelError} `InvalidTime` with Go's text.
 */
export function parseDuration(text: string): number {
  const sign = text.startsWith('-') ? -1 : 1;
  const body = text.replace(/^[+-]/, '');
  if (body === '0') return 0;
  let totalMs = 0;
  let at = 0;
  while (at < body.length) {
    DURATION_PART.lastIndex = at;
    const part = DURATION_PART.exec(body);
    const factor = UNITS.find(([unit]) => unit === part?.[2])?.[1];
    if (part === null || factor === undefined) break;
    totalMs += Number(part[1]) * factor;
    at = DURATION_PART.lastIndex;
  }
  if (at === 0 || at < body.length) throw new VmModelError('InvalidTime', `time: invalid duration "${text}"`);
  return sign * totalMs;
}

/** Prints milliseconds as Go prints a time.Duration: `1h0m5s`, `1.5s`, `250ms`, `0s`. */
export function renderDuration(ms: number): string {
  const sign = ms < 0 ? '-' : '';
  const ns = Math.round(Math.abs(ms) * 1e6);
  if (ns === 0) return '0s';
  if (ns < 1e3) return `${sign}${ns}ns`;
  if (ns < 1e6) return `${sign}${ns / 1e3}µs`;
  if (ns < 1e9) return `${sign}${ns / 1e6}ms`;
  const totalSeconds = Math.floor(ns / 1e9);
  const seconds = `${(totalSeconds % 60) + (ns % 1e9) / 1e9}s`;
  const minutes = Math.floor(totalSeconds / 60);
  if (minutes === 0) return `${sign}${seconds}`;
  const hours = Math.floor(minutes / 60);
  return hours === 0 ? `${sign}${minutes}m${seconds}` : `${sign}${hours}h${minutes % 60}m${seconds}`;
}
