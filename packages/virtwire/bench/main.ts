// Starts the demo's VM nine times, one after the other, and tells where the time of the median start went.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { renderTimelineTable, timelineMark } from '@virtwire/telemetry';
import type { Timeline } from '@virtwire/telemetry';
import { launcherOf } from '../integration/support/processes.ts';
import { loadManifest, nodeLayout, openNode, requestStop, timelineOf, waitForVmi } from '../src/index.ts';
import type { NodeLayout, StandaloneNode } from '../src/index.ts';

const STARTS = 9;
const QUIET_MS = 2_000;
const LIMIT_MS = 120_000;
/** What a start may take, and what is aimed at. */
const TARGET_MS = 600;
const BUDGET_MS = 450;
const BUSY_LOAD = 1;
const MANIFEST = join(import.meta.dirname, '..', '..', '..', 'examples', 'demo.yaml');
const KEY = 'default/demo';

interface Start {
  readonly runningMs: number;
  readonly timeline: Timeline;
  readonly launcher: Memory;
  readonly handler: Memory;
}

interface Memory {
  readonly rssMiB: number;
  readonly anonMiB: number;
}

const say = (text: string): void => void process.stdout.write(`${text}\n`);

function memoryOf(pid: number | undefined): Memory {
  const status = pid === undefined ? '' : readFileSync(`/proc/${pid}/status`, 'utf8');
  const of = (name: string): number => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(status)?.[1] ?? 0) / 1_024;
  return { rssMiB: of('VmRSS'), anonMiB: of('RssAnon') };
}

async function startOnce(node: StandaloneNode, layout: NodeLayout): Promise<Start> {
  await node.admit(loadManifest(MANIFEST, layout), { keep: false });
  const isRunning = (phase: string | undefined): true | undefined => {
    if (phase === 'Failed') throw new Error('the VM failed');
    return phase === 'Running' ? true : undefined;
  };
  const options = { what: 'VMI Running', timeoutMs: LIMIT_MS };
  await waitForVmi(node.store, KEY, (vmi) => isRunning(vmi?.status?.phase), options);
  await sleep(QUIET_MS);
  const uid = node.store.get(KEY)?.metadata.uid ?? '';
  const init = node.records.read(uid)?.pid;
  const launcher = memoryOf(init === undefined ? undefined : launcherOf(init));
  const handler = memoryOf(node.handler.pid);
  const timeline = timelineOf(layout, KEY);
  await requestStop(node, KEY, true);
  await waitForVmi(node.store, KEY, (vmi) => (vmi === undefined ? true : undefined), { ...options, what: 'the end' });
  return { runningMs: timelineMark(timeline, 'running') ?? Number.NaN, timeline, launcher, handler };
}

function medianOf(starts: readonly Start[]): Start {
  const sorted = [...starts].sort((a, b) => a.runningMs - b.runningMs);
  const median = sorted[Math.floor(sorted.length / 2)];
  if (median === undefined) throw new Error('no start was measured');
  return median;
}

function report(starts: readonly Start[]): boolean {
  const median = medianOf(starts);
  const times = starts.map((start) => start.runningMs.toFixed(0)).join(', ');
  say(`\nhand-over to Running: median ${median.runningMs.toFixed(0)} ms of ${starts.length} starts (${times})`);
  say(`limit ${TARGET_MS} ms, budget ${BUDGET_MS} ms`);
  say('\nwhere the time of the median start went:\n');
  const untilRunning = median.timeline.entries.filter((entry) => entry.atMs <= median.runningMs);
  say(renderTimelineTable({ ...median.timeline, entries: untilRunning }));
  for (const [name, memory] of [
    ['launcher', median.launcher],
    ['handler', median.handler],
  ] as const) {
    say(`${name}: RSS ${memory.rssMiB.toFixed(0)} MiB, of that anonymous ${memory.anonMiB.toFixed(0)} MiB`);
  }
  return median.runningMs <= TARGET_MS;
}

const [load = 0] = loadavg();
if (load > BUSY_LOAD)
  say(`this machine is busy (load ${load.toFixed(1)}): these will not be the figures of quiet starts`);
const stateDir = mkdtempSync(join(tmpdir(), 'virtwire-bench-'));
const layout = nodeLayout(stateDir);
const starts: Start[] = [];
try {
  await using node = await openNode({ layout, command: 'bench' });
  for (let i = 1; i <= STARTS; i += 1) {
    const start = await startOnce(node, layout);
    starts.push(start);
    say(`start ${i} of ${STARTS}: ${start.runningMs.toFixed(0)} ms`);
    await sleep(QUIET_MS);
  }
} finally {
  rmSync(stateDir, { recursive: true, force: true });
}
if (!report(starts)) process.exitCode = 1;
process.exit();
