import { execFile, execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

const ROOT = join(import.meta.dirname, '..');
const NETNS = `e2e-demo-${process.pid}`;
const LIMIT_MS = 200_000;

interface Report {
  readonly ok: boolean;
  readonly phase: string;
  readonly handoverToRunningMs: number;
  readonly agentConnectedMs: number;
  readonly timeline: readonly {
    readonly atMs: number;
    readonly who: string;
    readonly where: string;
    readonly what: string;
  }[];
  readonly leftovers: readonly string[];
}

const canRun = process.getuid?.() === 0 && existsSync('/usr/bin/qemu-system-x86_64');

/** Every moment that a start has, in the order in which they come. */
const LANDMARKS = [
  'launcher ready',
  'hand-over',
  'network current state',
  'network desired state',
  'notify pipe connection accepted',
  'domain defined',
  'domain started',
  'synced',
  'VMI Running',
  'AgentConnected',
];

describe.skipIf(!canRun)(`the demo${canRun ? '' : ': needs root and QEMU'}`, () => {
  let lines: string[] = [];
  let report: Report;

  beforeAll(async () => {
    execFileSync('sh', [join(ROOT, 'scripts', 'setup.sh')]);
    execFileSync('sh', [join(ROOT, 'scripts', 'guest', 'build.sh')]);
    // A namespace without a way out: once all is set up, nothing may be fetched.
    execFileSync('ip', ['netns', 'add', NETNS]);
    execFileSync('ip', ['-n', NETNS, 'link', 'set', 'lo', 'up']);
    // Not by `ip netns exec`: that mounts /sys anew, without the cgroups.
    const demo = [`--net=/run/netns/${NETNS}`, 'sh', join(ROOT, 'scripts', 'demo.sh'), '--json'];
    const { stdout } = await promisify(execFile)('nsenter', demo, { timeout: LIMIT_MS, maxBuffer: 1 << 24 });
    lines = stdout.trimEnd().split('\n');
    report = JSON.parse(lines.at(-1) ?? '') as Report;
  }, LIMIT_MS);

  afterAll(() => {
    execFileSync('ip', ['netns', 'delete', NETNS]);
  });

  test('boots a VM without network access, reaches it, and leaves nothing behind', () => {
    expect(report).toMatchObject({ ok: true, phase: 'Succeeded', leftovers: [] });
    expect(lines.join('\n')).toContain('over the pod network: "hello from the virtwire guest"');
  });

  test('pauses the VM and lets it go on', () => {
    expect(lines).toEqual(expect.arrayContaining(['demo: default/demo paused', 'demo: default/demo goes on']));
  });

  test.each(LANDMARKS)('the timeline holds: %s', (what) => {
    expect(report.timeline.map((entry) => entry.what)).toContain(what);
  });

  test('the timeline is monotonic and from both processes', () => {
    const times = report.timeline.map((entry) => entry.atMs);
    expect(times).toEqual([...times].sort((a, b) => a - b));
    expect(new Set(report.timeline.map((entry) => entry.who))).toEqual(new Set(['handler', 'launcher']));
    for (const entry of report.timeline) expect(entry.where).toMatch(/^[a-z-]+\.ts:\d+$/);
  });

  test('its figures are those of its timeline', () => {
    const at = (what: string): number | undefined => report.timeline.find((entry) => entry.what === what)?.atMs;
    expect(at('hand-over')).toBe(0);
    expect(report.handoverToRunningMs).toBe(at('VMI Running'));
    expect(report.agentConnectedMs).toBe(at('AgentConnected'));
  });
});
