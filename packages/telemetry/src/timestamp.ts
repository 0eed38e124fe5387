import { performance } from 'node:perf_hooks';

/**
 * Wall-clock time in microseconds since the epoch, monotonic within the process.
 *
 * Taken from the performance clock, since `Date.now()` has only milliseconds and may step back.
 */
export function nowMicroseconds(): number {
  return Math.round((performance.timeOrigin + performance.now()) * 1_000);
}

/** Prints microseconds since the epoch as `2026-11-29T18:42:52.376226Z`. */
export function renderTimestamp(microseconds: number): string {
  const milliseconds = Math.floor(microseconds / 1_000);
  const rest = String(microseconds - milliseconds * 1_000).padStart(3, '0');
  return `${new Date(milliseconds).toISOString().slice(0, -1)}${rest}Z`;
}

/** Reads such a timestamp back; undefined when the text is no timestamp. Fractions of any length are accepted. */
export function parseTimestamp(text: string): number | undefined {
  const match = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?Z$/.exec(text);
  if (match?.[1] === undefined) return undefined;
  const seconds = Date.parse(`${match[1]}Z`);
  if (Number.isNaN(seconds)) return undefined;
  return seconds * 1_000 + Number((match[2] ?? '').padEnd(6, '0').slice(0, 6));
}
