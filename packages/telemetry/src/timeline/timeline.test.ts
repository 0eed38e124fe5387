import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { renderTimelineHtml } from './html.ts';
import { LANDMARK } from './landmarks.ts';
import { timelineMark } from './marks.ts';
import { readTimeline } from './read.ts';
import type { Timeline } from './read.ts';
import { renderTimelineTable } from './table.ts';

const recorded = (process: string): string[] =>
  readFileSync(new URL(`../../testdata/v1.9.0/${process}.log`, import.meta.url), 'utf8').split('\n');

function goTimeline(): Timeline {
  const timeline = readTimeline([{ lines: recorded('handler') }, { lines: recorded('launcher'), isOfVm: true }], {
    name: 'vm1',
  });
  if (timeline === undefined) throw new Error('the recorded logs hand vm1 over');
  return timeline;
}

const line = (at: string, component: string, msg: string, more: object = {}): string =>
  JSON.stringify({ component, level: 'info', msg, pos: 'x.ts:1', timestamp: `2026-01-02T03:04:${at}Z`, ...more });
const vm1 = { name: 'vm1', namespace: 'default', uid: 'u1' };
const handover = line('05.000000', 'virt-handler', `${LANDMARK.phaseLine}Scheduled | Domain does not exist`, vm1);

test('logs of a KubeVirt v1.9.0 pair show every step of the start, in order of time', () => {
  expect(goTimeline().entries.map((e) => e.what)).toEqual([
    'launcher ready',
    'hand-over',
    'network current state',
    'network desired state',
    'notify pipe connection accepted',
    'domain defined',
    'domain started',
    'synced',
    'VMI Running',
    'guest agent connected',
  ]);
});

test('marks count from the hand-over', () => {
  expect(timelineMark(goTimeline(), 'running')).toBeCloseTo(953.172, 3);
  expect(timelineMark(goTimeline(), 'agentConnected')).toBeCloseTo(10_239.186, 3);
});

test('the table counts seconds from the hand-over and names who and where', () => {
  const table = renderTimelineTable(goTimeline());
  expect(table).toMatch(/^\+seconds \| who +\| where +\| what\n/);
  expect(table).toMatch(/^ +\+0\.000 \| handler +\| vm\.go:1461 +\| hand-over$/m);
  expect(table).toMatch(/^ +-0\.317 \| launcher +\| virt-launcher\.go:85 +\| launcher ready$/m);
});

test('a timed step begins before its line, by its length', () => {
  const sync = line('05.100000', 'virt-handler', 'network phase 1', { ...vm1, durationMs: 40 });
  const timeline = readTimeline([{ lines: [handover, sync] }], { name: 'vm1' });
  expect(timeline?.entries[1]).toEqual({
    atMs: 60,
    durationMs: 40,
    who: 'handler',
    where: 'x.ts:1',
    what: 'network phase 1',
  });
});

test('lines of other VMs, of an earlier VM of the same name, and cut-off lines are left out', () => {
  const lines = [
    line('01.000000', 'virt-handler', `${LANDMARK.phaseLine}Scheduled | Domain does not exist`, { ...vm1, uid: 'u0' }),
    handover,
    line('05.200000', 'virt-handler', LANDMARK.pipeAccepted, { ...vm1, name: 'vm2' }),
    line('05.300000', 'virt-handler', LANDMARK.pipeAccepted, { ...vm1, uid: 'u0' }),
    line('05.400000', 'virt-handler', LANDMARK.pipeAccepted),
    handover.slice(0, 60),
    'panic: not JSON',
  ];
  const newest = readTimeline([{ lines }], { name: 'vm1' });
  expect(newest?.uid).toBe('u1');
  expect(newest?.entries.map((e) => e.what)).toEqual(['hand-over']);
  expect(readTimeline([{ lines }], { name: 'vm1', uid: 'u0' })?.entries).toHaveLength(2);
});

test('a VM that was never handed over has no timeline', () => {
  expect(readTimeline([{ lines: [handover] }], { name: 'vm2' })).toBeUndefined();
});

test('the page is self-contained, and text from logs cannot become markup', () => {
  const evil = line('05.100000', 'virt-handler', '<script>alert(1)</script>', { ...vm1, durationMs: 1 });
  const timeline = readTimeline([{ lines: [handover, evil] }], { name: 'vm1' });
  if (timeline === undefined) throw new Error('handed over');
  const html = renderTimelineHtml(timeline);
  expect(html).not.toMatch(/<script|<link|src=|https?:/);
  expect(html).toContain('&lt;script&gt;alert(1)&lt;/script&gt;');
});

test('every step of the page is told in words, with its time', () => {
  const html = renderTimelineHtml(goTimeline());
  for (const entry of goTimeline().entries) expect(html).toContain(entry.what);
  expect(html).toContain('+0.953 s');
  expect(html).toContain('drawn coarser');
});
