import { parseTimestamp } from '../timestamp.ts';
import { LANDMARK } from './landmarks.ts';

/** One line of the table. */
export interface TimelineEntry {
  /** Milliseconds after the hand-over; negative before it. */
  readonly atMs: number;
  /** `handler`, `launcher`, or the component as logged. */
  readonly who: string;
  /** `file.ts:line`. */
  readonly where: string;
  readonly what: string;
  /** Length of a timed step; absent for a moment. */
  readonly durationMs?: number;
  readonly failed?: boolean;
}

export interface Timeline {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  /** Time of the hand-over, RFC 3339 with microseconds as logged. */
  readonly handoverAt: string;
  /** Sorted by time. */
  readonly entries: readonly TimelineEntry[];
}

export interface LogFile {
  /** Lines of one process's log, without their ends. Lines that are no JSON objects are passed over. */
  readonly lines: Iterable<string>;
  /** True for a launcher's log: all its lines belong to the VM, also those that name no object. */
  readonly isOfVm?: boolean;
}

export interface TimelineQuery {
  readonly name: string;
  /** `default` when absent. */
  readonly namespace?: string;
  /** Without it the newest VM of that name is taken. */
  readonly uid?: string;
}

interface Line {
  readonly atUs: number;
  readonly timestamp: string;
  readonly who: string;
  readonly where: string;
  readonly msg: string;
  readonly uid: string;
  readonly durationMs: number | undefined;
  readonly failed: boolean;
}

const text = (value: unknown): string => (typeof value === 'string' ? value : '');

function parseLine(raw: string, isOfVm: boolean, query: Required<Pick<TimelineQuery, 'name' | 'namespace'>>) {
  if (!raw.startsWith('{')) return undefined;
  let record: Record<string, unknown>;
  try {
    record = JSON.parse(raw) as Record<string, unknown>;
  } catch {
    return undefined; // A line cut off by a killed process.
  }
  const timestamp = text(record['timestamp']);
  const atUs = parseTimestamp(timestamp);
  if (atUs === undefined) return undefined;
  const names = record['name'] !== undefined;
  if (names ? record['name'] !== query.name || record['namespace'] !== query.namespace : !isOfVm) return undefined;
  const durationMs = typeof record['durationMs'] === 'number' ? record['durationMs'] : undefined;
  return {
    atUs: durationMs === undefined ? atUs : atUs - Math.round(durationMs * 1_000),
    timestamp,
    who: text(record['component']).replace(/^virt-/, ''),
    where: text(record['pos']),
    msg: text(record['msg']),
    uid: text(record['uid']),
    durationMs,
    failed: durationMs !== undefined && record['level'] !== 'info',
  } satisfies Line;
}

const MOMENTS: readonly (readonly [prefix: string, what: string])[] = [
  [LANDMARK.markedAsReady, 'launcher ready'],
  [LANDMARK.currentPodNetwork, 'network current state'],
  [LANDMARK.desiredPodNetwork, 'network desired state'],
  [LANDMARK.pipeAccepted, 'notify pipe connection accepted'],
  [LANDMARK.domainDefined, 'domain defined'],
  [LANDMARK.domainStarted, 'domain started'],
  [LANDMARK.synced, 'synced'],
  [LANDMARK.agentLifecycle, 'guest agent connected'],
  [LANDMARK.agentConnected, 'AgentConnected'],
];

/** What a line stands for in the table, or undefined when it is of no interest there. */
function describe(line: Line, seen: Set<string>): string | undefined {
  if (line.durationMs !== undefined) return line.msg;
  if (line.msg.startsWith(LANDMARK.phaseChanged)) return phaseOnce(line.msg.slice(LANDMARK.phaseChanged.length), seen);
  const phase = /^VMI is in phase: (\w+)/.exec(line.msg)?.[1];
  if (phase !== undefined) {
    if (!seen.has('handover')) {
      seen.add('handover');
      return 'hand-over';
    }
    // KubeVirt's handler logs the phase on every pass and only that way; the first Running line stands for the write.
    return phase === 'Scheduled' ? undefined : phaseOnce(phase, seen);
  }
  const moment = MOMENTS.find(([prefix]) => line.msg.startsWith(prefix))?.[1];
  // Repeated syncs and pipe connections are routine after the first.
  if (moment === undefined || seen.has(moment)) return undefined;
  seen.add(moment);
  return moment;
}

function phaseOnce(phase: string, seen: Set<string>): string | undefined {
  const what = `VMI ${phase}`;
  if (seen.has(what)) return undefined;
  seen.add(what);
  return what;
}

/**
 * Reads the timeline of one VM's life out of the logs of its handler and its launcher, ours or KubeVirt's.
 *
 * @returns undefined when no line hands that VM over.
 */
export function readTimeline(files: readonly LogFile[], query: TimelineQuery): Timeline | undefined {
  const namespace = query.namespace ?? 'default';
  const lines: Line[] = [];
  for (const file of files) {
    for (const raw of file.lines) {
      const line = parseLine(raw, file.isOfVm ?? false, { name: query.name, namespace });
      if (line !== undefined) lines.push(line);
    }
  }
  lines.sort((a, b) => a.atUs - b.atUs);
  const handovers = lines.filter((l) => l.msg.startsWith(LANDMARK.phaseLine));
  const uid = query.uid ?? handovers.at(-1)?.uid;
  const handover = handovers.find((l) => l.uid === uid);
  if (uid === undefined || handover === undefined) return undefined;
  const seen = new Set<string>();
  const entries: TimelineEntry[] = [];
  for (const line of lines) {
    if (line.uid !== '' && line.uid !== uid) continue;
    const what = describe(line, seen);
    if (what === undefined) continue;
    entries.push({
      atMs: (line.atUs - handover.atUs) / 1_000,
      who: line.who,
      where: line.where,
      what,
      ...(line.durationMs === undefined ? {} : { durationMs: line.durationMs }),
      ...(line.failed ? { failed: true } : {}),
    });
  }
  return { namespace, name: query.name, uid, handoverAt: handover.timestamp, entries };
}
