// Boots examples/demo.yaml with the command line, as a user would, and tells what happened and when.
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { mkdtempSync, readFileSync, existsSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { renderTimelineTable, timelineMark } from '@virtwire/telemetry';
import type { Timeline } from '@virtwire/telemetry';
import { isConditionTrue } from '@virtwire/vm-model';
import type { Vmi } from '@virtwire/vm-model';
import * as virtwire from '@virtwire/virtwire';
import { readGuestPage } from './guest-page.ts';
import { marksOf } from './marks.ts';

const ROOT = join(import.meta.dirname, '..', '..');
const MANIFEST = join(ROOT, 'examples', 'demo.yaml');
const KEY = 'default/demo';
const RUNNING_MS = 60_000;
const AGENT_MS = 120_000;
const STOP_MS = 90_000;
const PAGE_MS = 30_000;

const say = (text: string): void => void process.stdout.write(`${text}\n`);
const step = (text: string): void => say(`demo: ${text}`);

interface DemoResult {
  readonly phase: string;
  readonly timeline: Timeline;
  readonly record: virtwire.SandboxRecord;
}

/** `virtwire run` as a process of its own; its lines are shown as they come. */
class Run implements AsyncDisposable {
  readonly exited: Promise<number>;
  readonly #child: ChildProcess;
  readonly #ended = new AbortController();

  constructor(stateDir: string) {
    const bin = join(ROOT, 'packages', 'virtwire', 'bin', 'virtwire');
    this.#child = spawn(bin, ['run', relative(process.cwd(), MANIFEST), '--state-dir', stateDir], {
      stdio: ['ignore', 'inherit', 'inherit'],
    });
    this.exited = new Promise((resolve, reject) => {
      this.#child.once('error', reject);
      this.#child.once('exit', (code) => {
        this.#ended.abort(new Error(`virtwire run ended too early, with exit code ${code}`));
        resolve(code ?? 1);
      });
    });
  }

  /** Aborted when the process ends; what waits for its VM need not wait any longer. */
  get ended(): AbortSignal {
    return this.#ended.signal;
  }

  interrupt(): void {
    this.#child.kill('SIGINT');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode !== null) return;
    this.interrupt();
    const impatience = setTimeout(() => this.interrupt(), STOP_MS);
    await this.exited;
    clearTimeout(impatience);
  }
}

async function waitForFiles(layout: virtwire.NodeLayout, signal: AbortSignal): Promise<virtwire.NodeFiles> {
  for (;;) {
    signal.throwIfAborted();
    const files = virtwire.openNodeFiles(layout);
    if (files !== undefined) return files;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

async function watchDemo(layout: virtwire.NodeLayout, run: Run): Promise<DemoResult> {
  const { ended: signal } = run;
  const { store } = await waitForFiles(layout, signal);
  const until = (what: string, timeoutMs: number, is: (vmi: Vmi) => boolean): Promise<Vmi> => {
    const wanted = (vmi: Vmi | undefined): Vmi | undefined => (vmi !== undefined && is(vmi) ? vmi : undefined);
    return virtwire.waitForVmi(store, KEY, wanted, { what, timeoutMs, signal });
  };
  await until('VMI Running', RUNNING_MS, (vmi) => vmi.status?.phase === 'Running');
  await until('AgentConnected', AGENT_MS, (vmi) => isConditionTrue(vmi.status?.conditions, 'AgentConnected'));
  const record = virtwire.findSandbox(layout, KEY);
  const page = await readGuestPage(record.podIp, 80, PAGE_MS);
  step(`the guest answers at ${record.podIp}:80 over the pod network: "${page}"`);
  const timeline = virtwire.timelineOf(layout, KEY);
  say(`\n${renderTimelineTable(timeline)}`);
  const output = { line: step, error: step, document: step, raw: () => Promise.resolve() };
  await virtwire.pauseVm({ target: KEY, layout, output });
  await virtwire.unpauseVm({ target: KEY, layout, output });
  run.interrupt();
  const code = await run.exited;
  return { phase: code === 0 ? 'Succeeded' : 'Failed', timeline, record };
}

/** The last words of a log, for somebody who has to find out what went wrong. */
function showLog(file: string): void {
  if (!existsSync(file)) return;
  const lines = readFileSync(file, 'utf8').trim().split('\n').slice(-8);
  for (const line of lines) process.stderr.write(`demo: ${line.slice(0, 300)}\n`);
}

function required(timeline: Timeline, mark: 'running' | 'agentConnected'): number {
  const atMs = timelineMark(timeline, mark);
  if (atMs === undefined) throw new Error(`the timeline does not hold ${mark}`);
  return atMs;
}

async function demo(stateDir: string, json: boolean): Promise<void> {
  const layout = virtwire.nodeLayout(stateDir);
  const before = await virtwire.takeSnapshot(virtwire.runTool);
  let result: DemoResult;
  {
    await using run = new Run(stateDir);
    result = await watchDemo(layout, run);
  }
  const { phase, timeline, record } = result;
  const after = await virtwire.takeSnapshot(virtwire.runTool);
  const leftovers = virtwire.findLeftovers(before, after, marksOf(layout, record));
  const handoverToRunningMs = required(timeline, 'running');
  const agentConnectedMs = required(timeline, 'agentConnected');
  const ok = phase === 'Succeeded' && leftovers.length === 0;
  for (const line of leftovers) step(`left behind: ${line}`);
  step(`hand-over to Running ${handoverToRunningMs.toFixed(0)} ms, guest agent ${agentConnectedMs.toFixed(0)} ms`);
  step(ok ? `the VM ${phase}, nothing is left behind` : `failed: the VM ${phase}, ${leftovers.length} things left`);
  const entries = timeline.entries.map(({ atMs, who, where, what }) => ({ atMs, who, where, what }));
  const report = { ok, phase, handoverToRunningMs, agentConnectedMs, timeline: entries, leftovers };
  if (json) say(JSON.stringify(report));
  if (!ok) process.exitCode = 1;
}

const json = process.argv.includes('--json');
const stateDir = mkdtempSync(join(tmpdir(), 'virtwire-demo-'));
try {
  await demo(stateDir, json);
} catch (caught) {
  const layout = virtwire.nodeLayout(stateDir);
  showLog(layout.handlerLog);
  showLog(join(layout.logsDir, 'default_demo.launcher.log'));
  const text = caught instanceof Error ? caught.message : String(caught);
  process.stderr.write(`demo: failed: ${text}\n`);
  if (json) say(JSON.stringify({ ok: false, error: text }));
  process.exitCode = 1;
} finally {
  rmSync(stateDir, { recursive: true, force: true });
}
process.exit();
