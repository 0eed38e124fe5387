import { timelineMark } from './marks.ts';
import type { Timeline, TimelineEntry } from './read.ts';

/** Where moments lie on the picture's width. */
export interface Scale {
  /** Position in percent. */
  at(ms: number): number;
  /** Moments that get a label, in order. */
  readonly ticksMs: readonly number[];
  /** Where the scale gets coarser, if it does. */
  readonly breakMs: number | undefined;
}

/** Share of the width that the start gets when the wait for the guest is much longer. */
const START_PERCENT = 75;

/** The end of an entry; a moment ends when it begins. */
export function endOf(entry: TimelineEntry): number {
  return entry.atMs + (entry.durationMs ?? 0);
}

function stepOf(spanMs: number, count: number): number {
  const rough = spanMs / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  return ([1, 2, 5].find((n) => n * power >= rough) ?? 10) * power;
}

function ticks(fromMs: number, toMs: number, count: number): number[] {
  const step = stepOf(toMs - fromMs, count);
  const found: number[] = [];
  for (let n = Math.ceil(fromMs / step); n * step <= toMs; n += 1) found.push(n * step);
  return found;
}

/**
 * Chooses the scale: linear, or with a coarser last quarter when the guest takes much longer to boot than the node to
 * start it, since the start would be a speck otherwise.
 */
export function scaleOf(timeline: Timeline): Scale {
  const { entries } = timeline;
  const fromMs = Math.min(0, ...entries.map((e) => e.atMs));
  const toMs = Math.max(fromMs + 1, ...entries.map(endOf));
  const linear = (ms: number, from: number, to: number): number => (ms - from) / (to - from);
  const runningMs = timelineMark(timeline, 'running');
  const startEndMs = runningMs === undefined ? toMs : runningMs + (runningMs - fromMs) * 0.08;
  if (toMs - fromMs < (startEndMs - fromMs) * 2) {
    return { at: (ms) => linear(ms, fromMs, toMs) * 100, ticksMs: ticks(fromMs, toMs, 5), breakMs: undefined };
  }
  return {
    at: (ms) =>
      ms <= startEndMs
        ? linear(ms, fromMs, startEndMs) * START_PERCENT
        : START_PERCENT + linear(ms, startEndMs, toMs) * (100 - START_PERCENT),
    ticksMs: [...ticks(fromMs, startEndMs, 4), toMs],
    breakMs: startEndMs,
  };
}
