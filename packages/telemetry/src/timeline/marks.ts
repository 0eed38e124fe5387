import type { Timeline } from './read.ts';

/** Moments that people compare between starts. */
export type TimelineMark = 'running' | 'agentConnected';

const WHAT: Readonly<Record<TimelineMark, readonly string[]>> = {
  running: ['VMI Running'],
  // KubeVirt's handler has no line for the condition; the launcher's event is the nearest.
  agentConnected: ['AgentConnected', 'guest agent connected'],
};

/** Milliseconds from the hand-over to a mark, or undefined when the VM did not get there. */
export function timelineMark(timeline: Timeline, mark: TimelineMark): number | undefined {
  for (const what of WHAT[mark]) {
    const entry = timeline.entries.find((e) => e.what === what);
    if (entry !== undefined) return entry.atMs;
  }
  return undefined;
}
