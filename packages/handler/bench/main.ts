/**
 * Measures the handler's share of many starts at once, its memory, and what it costs while nothing happens.
 *
 *   nx bench handler
 *   BENCH_VMS=300 nx bench handler
 */
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { Vmi } from '@virtwire/vm-model';
import { FileStore } from '../integration/support/file-store.ts';
import { TalkingProcess, until } from '../integration/support/node-scene.ts';

const VMS = Number(process.env['BENCH_VMS'] ?? 100);
const IDLE_MS = 10_000;
const START_P95_BUDGET_MS = 300;
const RSS_BUDGET_MIB = 130 + 0.5 * VMS;
const IDLE_CPU_BUDGET = 0.001;

const root = mkdtempSync('/tmp/vb');
/** The private directory is in memory, as `/var/run` is. */
const privateDir = mkdtempSync('/dev/shm/vb');
const names = Array.from({ length: VMS }, (_, i) => `vm${String(i)}`);
const podUid = (name: string): string => `11111111-0000-4000-8000-${name.padStart(12, '0')}`;
const socketOf = (name: string): string =>
  join(root, 'p', podUid(name), 'volumes/kubernetes.io~empty-dir/sockets/launcher-sock');
const RUN = ['-C', '@virtwire/source'];
const LAUNCHERS = fileURLToPath(import.meta.resolve('./launchers-process.ts'));
const HANDLER = fileURLToPath(import.meta.resolve('./handler-process.ts'));
const holders: ChildProcess[] = [];

/** One process with an empty /run per VM, for its pipe. */
async function holdNamespace(): Promise<number> {
  const script = 'mount -t tmpfs tmpfs /run && mkdir /run/kubevirt && echo ready && exec sleep infinity';
  const holder = spawn('unshare', ['--mount', 'sh', '-c', script], { stdio: ['ignore', 'pipe', 'inherit'] });
  holders.push(holder);
  await once(holder.stdout, 'data');
  return holder.pid ?? 0;
}

function vmi(name: string): Vmi {
  return {
    metadata: {
      namespace: 'default',
      name,
      uid: `22222222-0000-4000-8000-${name.padStart(12, '0')}`,
      resourceVersion: '1',
      labels: { 'kubevirt.io/nodeName': 'node01' },
    },
    spec: {
      terminationGracePeriodSeconds: 30,
      networks: [{ name: 'default', pod: {} }],
      domain: { resources: {}, devices: { interfaces: [{ name: 'default', masquerade: {} }] } },
    },
    status: { phase: 'Scheduled', nodeName: 'node01', runtimeUser: 107, activePods: { [podUid(name)]: 'node01' } },
  };
}

interface Stats {
  readonly rssMiB: number;
  readonly cpuMs: number;
  readonly writes: number;
}

async function statsOf(handler: TalkingProcess): Promise<Stats> {
  const before = handler.said('rssMiB').length;
  handler.tell({});
  await until('the figures are there', () => handler.said('rssMiB').length > before);
  return handler.lines.findLast((line) => 'rssMiB' in line) as unknown as Stats;
}

function percentile(values: readonly number[], part: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0;
}

function print(what: string, value: string, budget: string): void {
  process.stdout.write(`${what.padEnd(52)} ${value.padStart(14)}   budget ${budget}\n`);
}

async function measure(): Promise<void> {
  const pids: Record<string, number> = {};
  const places: { readonly socket: string; readonly pipe: string }[] = [];
  for (const name of names) {
    const socket = socketOf(name);
    mkdirSync(dirname(socket), { recursive: true });
    const pid = await holdNamespace();
    pids[socket] = pid;
    places.push({ socket, pipe: `/proc/${String(pid)}/root/run/kubevirt/domain-notify-pipe.sock` });
  }
  writeFileSync(join(root, 'pids.json'), JSON.stringify(pids));
  writeFileSync(join(root, 'places.json'), JSON.stringify(places));
  const launchers = new TalkingProcess(process.execPath, [...RUN, LAUNCHERS, join(root, 'places.json')]);
  const handler = new TalkingProcess(process.execPath, [...RUN, HANDLER, root, privateDir]);
  try {
    await until(
      'launchers and handler are up',
      () => launchers.said('ready').length + handler.said('up').length === 2,
      60_000,
    );
    await sleep(1_000);
    await measureStarts(handler);
    await measureIdle(handler);
  } catch (error) {
    process.stderr.write(`${handler.log.slice(-2_000)}\n${launchers.log.slice(-2_000)}\n`);
    throw error;
  } finally {
    await handler.end('SIGKILL');
    await launchers.end('SIGKILL');
  }
}

async function measureStarts(handler: TalkingProcess): Promise<void> {
  const store = new FileStore(join(root, 'vmis'));
  const handedOver = new Map<string, number>();
  const { cpuMs: cpuBeforeMs } = await statsOf(handler);
  for (const name of names) {
    handedOver.set(name, Date.now());
    store.put(vmi(name));
  }
  const firstRunning = (): Map<string, number> => {
    const found = new Map<string, number>();
    for (const line of handler.lines) {
      const name = line['running'] as string | undefined;
      if (name !== undefined && !found.has(name)) found.set(name, line['atMs'] as number);
    }
    return found;
  };
  await until('all VMs run', () => firstRunning().size === VMS, 120_000);
  const times = [...firstRunning()].map(([name, atMs]) => atMs - (handedOver.get(name) ?? atMs));
  const title = `hand-over to VMI Running, ${String(VMS)} at once`;
  print(`${title}, median`, `${percentile(times, 0.5).toFixed(0)} ms`, '');
  print(`${title}, P95`, `${percentile(times, 0.95).toFixed(0)} ms`, `${String(START_P95_BUDGET_MS)} ms at 100`);
  await sleep(2_000);
  const { writes, rssMiB, cpuMs } = await statsOf(handler);
  print('handler CPU per start', `${((cpuMs - cpuBeforeMs) / VMS).toFixed(1)} ms`, '');
  print('VMI writes per start, to Running', (writes / VMS).toFixed(2), '2');
  print('handler RSS', `${rssMiB.toFixed(0)} MiB`, `${RSS_BUDGET_MIB.toFixed(0)} MiB`);
}

async function measureIdle(handler: TalkingProcess): Promise<void> {
  const before = await statsOf(handler);
  await sleep(IDLE_MS);
  const after = await statsOf(handler);
  const cores = (after.cpuMs - before.cpuMs) / IDLE_MS / VMS;
  print('VMI writes while idle, 10 s', String(after.writes - before.writes), '0');
  print('idle CPU per VMI', `${cores.toFixed(5)} core`, `${String(IDLE_CPU_BUDGET)} core`);
}

try {
  await measure();
} finally {
  for (const holder of holders) holder.kill('SIGKILL');
  rmSync(root, { recursive: true, force: true });
  rmSync(privateDir, { recursive: true, force: true });
}
