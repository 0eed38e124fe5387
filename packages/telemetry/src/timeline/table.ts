import type { Timeline } from './read.ts';

/** Prints the timeline as a table `+seconds | who | where | what`, one line per entry, with a header. */
export function renderTimelineTable(timeline: Timeline): string {
  const rows = timeline.entries.map((e) => {
    const took =
      e.durationMs === undefined ? '' : ` (${e.durationMs.toFixed(1)} ms${e.failed === true ? ', failed' : ''})`;
    const sign = e.atMs < 0 ? '-' : '+';
    return [`${sign}${(Math.abs(e.atMs) / 1_000).toFixed(3)}`, e.who, e.where, `${e.what}${took}`] as const;
  });
  const header = ['+seconds', 'who', 'where', 'what'] as const;
  const all = [header, ...rows];
  const widths = [0, 1, 2].map((column) => Math.max(...all.map((row) => (row[column] ?? '').length)));
  return all
    .map((row) =>
      row
        .map((cell, i) => (i === 0 ? cell.padStart(widths[0] ?? 0) : cell.padEnd(widths[i] ?? 0)))
        .join(' | ')
        .trimEnd(),
    )
    .map((line) => `${line}\n`)
    .join('');
}
