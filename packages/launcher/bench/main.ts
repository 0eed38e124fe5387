/**
 * Measures the launcher against its budgets: how fast it converts; then, from the bundle, on real libvirt, how long from
 * its start until it is ready, what memory it holds after many calls, and that syncs of a running VM leave nothing
 * behind. Needs root.
 */
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { unwrap } from '@virtwire/shared-proto';
import type { CmdClient } from '@virtwire/shared-proto';
import { createVmi, requestOf } from '../integration/support/guest.ts';
import { buildMonitor, startMonitorPod } from '../integration/support/monitor.ts';
import type { LauncherPod } from '../integration/support/sandbox.ts';
import { startLauncherPod } from '../integration/support/sandbox.ts';
import { timeConversions } from './conversion.ts';
import { timeMigration } from './migration.ts';

const UID = '7a1b2c3d-0000-4000-8000-0000000000be';
const FLAGS = ['--name', 'vm1', '--namespace', 'default', '--uid', UID];
const PACKAGE = join(import.meta.dirname, '..');
const BUNDLE = join(PACKAGE, 'dist-bin/virt-launcher.mjs');
const STARTS = Number(process.env['BENCH_STARTS'] ?? 5);
const CALLS = 2_000;
const SYNCS = Number(process.env['BENCH_SYNCS'] ?? 10_000);
const QUIET_MS = 10_000;

function print(what: string, value: string, budget: string): void {
  process.stdout.write(`${what.padEnd(52)} ${value.padStart(12)}   budget ${budget}\n`);
}

/** The command line that the start script of the bundle gives to node. */
function program(): readonly string[] {
  const script = readFileSync(join(PACKAGE, 'dist-bin/virt-launcher'), 'utf8');
  const flags = /^exec node (.*) "\$\(dirname/m.exec(script)?.[1]?.split(' ') ?? [];
  const more = process.env['BENCH_NODE_FLAGS']?.split(' ') ?? [];
  return [...flags, ...more, BUNDLE];
}

function startPod(): Promise<LauncherPod> {
  return startLauncherPod(FLAGS, { program: program() });
}

function timeOf(pod: LauncherPod, msg: string): number {
  return Date.parse(String(pod.logs.find((line) => line['msg'] === msg)?.['timestamp']));
}

/** When the sandbox handed over to the launcher, in ms since the epoch. */
function startedAtMs(pod: LauncherPod): number {
  return Number(/^exec (\d+)$/m.exec(pod.output())?.[1]);
}

function memoryMiB(pid: number): { readonly rss: number; readonly anonymous: number } {
  const text = readFileSync(`/proc/${String(pid)}/smaps_rollup`, 'utf8');
  const field = (name: string): number => Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(text)?.[1]) / 1_024;
  return { rss: field('Rss'), anonymous: field('Anonymous') };
}

function openFiles(pid: number): number {
  return readdirSync(`/proc/${String(pid)}/fd`).length;
}

/** Time that the main thread of a process has run, in ms: the same on a busy machine, nearly. */
function cpuMs(pid: number): number {
  return Number(readFileSync(`/proc/${String(pid)}/schedstat`, 'utf8').split(' ')[0]) / 1e6;
}

async function measureStarts(): Promise<void> {
  const totals: number[] = [];
  const daemons: number[] = [];
  const running: number[] = [];
  for (let i = 0; i < STARTS; i++) {
    await using pod = await startPod();
    await pod.waitUntilReady();
    await pod.waitForLog('Marked as ready');
    running.push(cpuMs(pod.launcherPid()));
    totals.push(timeOf(pod, 'Marked as ready') - startedAtMs(pod));
    daemons.push(Number(pod.logs.find((line) => line['msg'] === 'connect to libvirt')?.['durationMs']));
  }
  const median = (values: number[]): number => values.sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? NaN;
  print('exec to "Marked as ready", median', `${median(totals).toFixed(0)} ms`, '250 ms without the next line');
  print('of that, running on a CPU', `${median(running).toFixed(0)} ms`, '-');
  print('of that, waiting for the libvirt daemon', `${median(daemons).toFixed(0)} ms`, '-');
}

function measureConversions(): void {
  const { vmis, medianMs, slowest, slowestMs } = timeConversions();
  print(`VMI to domain XML, median of ${String(vmis)} VMIs`, `${medianMs.toFixed(2)} ms`, '2 ms');
  print(`the slowest of them, ${slowest}`, `${slowestMs.toFixed(2)} ms`, '2 ms');
}

async function measureMonitor(): Promise<void> {
  buildMonitor();
  await using pod = await startMonitorPod({ launcher: 'echo up >&2; sleep 600' });
  while (!pod.output().includes('up\n')) await sleep(20);
  const { rss, anonymous } = memoryMiB(pod.initPid());
  print('RSS of the monitor', `${rss.toFixed(2)} MiB`, '1 MiB');
  print('of that, anonymous', `${anonymous.toFixed(2)} MiB`, '-');
}

async function measureMigration(): Promise<void> {
  const pauseMs = await timeMigration();
  print(
    'pause of an idle guest that migrates',
    pauseMs === undefined ? 'no guest' : `${String(pauseMs)} ms`,
    '1000 ms',
  );
}

async function ask(client: CmdClient, times: number): Promise<void> {
  for (let i = 0; i < times; i++) {
    unwrap(await client.getDomain());
    unwrap(await client.getGuestInfo());
  }
}

async function measureMemory(): Promise<void> {
  await using pod = await startPod();
  await pod.ear.open();
  await pod.waitUntilReady();
  using client = await pod.connect();
  const vmi = createVmi({ name: 'vm1', uid: UID });
  unwrap(await client.syncVirtualMachine(requestOf(vmi)));
  await pod.ear.hear('Running', (e) => e.domain.Status.Status === 'Running');
  await ask(client, CALLS / 2);
  await sleep(QUIET_MS);
  const pid = pod.launcherPid();
  const steady = memoryMiB(pid);
  print(`anonymous memory after ${String(CALLS)} calls`, `${steady.anonymous.toFixed(1)} MiB`, '45 MiB');
  print(`RSS after ${String(CALLS)} calls`, `${steady.rss.toFixed(1)} MiB`, '100 MiB');
  const files = openFiles(pid);
  const running = requestOf({ ...vmi, status: { ...vmi.status, phase: 'Running' } });
  const startedMs = performance.now();
  for (let i = 0; i < SYNCS; i++) unwrap(await client.syncVirtualMachine(running));
  const each = (performance.now() - startedMs) / SYNCS;
  await sleep(QUIET_MS);
  print(`a sync of a running VM, mean of ${String(SYNCS)}`, `${each.toFixed(2)} ms`, '-');
  const after = memoryMiB(pid);
  print('anonymous memory that they left', `${(after.anonymous - steady.anonymous).toFixed(1)} MiB`, 'noise');
  print('RSS after them', `${after.rss.toFixed(1)} MiB`, '100 MiB');
  print('open files that they left', String(openFiles(pid) - files), '0');
}

measureConversions();
execFileSync(process.execPath, ['-C', '@virtwire/source', join(PACKAGE, 'scripts/bundle.ts')], { stdio: 'ignore' });
await measureStarts();
await measureMonitor();
await measureMemory();
await measureMigration();
