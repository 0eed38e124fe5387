/**
 * Round trips per second of this client and of python3-libvirt, on one private daemon, in interleaved rounds.
 *
 *   nx bench libvirt            prints a table
 *   BENCH_ROUNDS=20 nx bench libvirt
 */
import { spawn } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { printLeaks } from './leak.ts';
import { connect, DomainCreateFlags, DomainStatsTypes } from '../src/index.ts';
import type { Connection, Domain } from '../src/index.ts';
import { privateDaemonObstacle, startPrivateDaemon, tinyDomainXml } from '../src/testing/index.ts';
import type { PrivateDaemon } from '../src/testing/index.ts';

const DISKS = 17;
const SEQUENTIAL_BUDGET = 0.95;
const PARALLEL_BUDGET = 1.5;
const IN_FLIGHT = 4;
const SOME = DomainStatsTypes.STATE | DomainStatsTypes.CPU_TOTAL | DomainStatsTypes.VCPU;

/** The first rounds are for the JIT. */
const WARM_UP_ROUNDS = 6;

/** Statistics of one domain wait for its lock in the daemon, whoever asks and however often: more calls gain nothing. */
const GAINS_IN_PARALLEL: ReadonlySet<CaseName> = new Set(['libVersion', 'domainInfo', 'domainXml']);

/** Calls per round: some hundredths of a second, so that the load of the machine meets all clients of a round alike. */
const COUNTS = { libVersion: 300, domainInfo: 300, domainXml: 150, someStats: 20, allStats: 4 } as const;

type CaseName = keyof typeof COUNTS;

/** Runs a number of calls and returns the seconds that they took. */
type Runner = (name: CaseName, count: number) => Promise<number>;

function nodeRunner(connection: Connection, domain: Domain, inFlight: number): Runner {
  const cases: Readonly<Record<CaseName, () => Promise<unknown>>> = {
    libVersion: () => connection.getLibVersion(),
    domainInfo: () => domain.getInfo(),
    domainXml: () => domain.getXmlDesc(),
    someStats: () => connection.getAllDomainStats({ stats: SOME }),
    allStats: () => connection.getAllDomainStats(),
  };
  return async (name, count) => {
    const call = cases[name];
    let left = count;
    const worker = async (): Promise<void> => {
      while (left-- > 0) await call();
    };
    const startedAtMs = performance.now();
    await Promise.all(Array.from({ length: inFlight }, worker));
    return (performance.now() - startedAtMs) / 1_000;
  };
}

function startPython(uri: string, name: string): { readonly run: Runner } & Disposable {
  const script = join(import.meta.dirname, 'python-client.py');
  const child = spawn('/usr/bin/python3', [script, uri, name], { stdio: ['pipe', 'pipe', 'inherit'] });
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
  return {
    run: async (caseName, count) => {
      child.stdin.write(`${caseName} ${String(count)}\n`);
      const { value, done } = await lines.next();
      if (done === true) throw new Error('python3-libvirt ended; is it installed?');
      return Number(value);
    },
    [Symbol.dispose]: () => void child.kill(),
  };
}

async function startGuest(daemon: PrivateDaemon, connection: Connection): Promise<Domain> {
  const disks = Array.from({ length: DISKS }, (_, i) => {
    const path = join(daemon.directory, `disk-${String(i)}.img`);
    writeFileSync(path, Buffer.alloc(1 << 20));
    const target = `vd${String.fromCharCode(97 + i)}`;
    return `<disk type='file' device='disk'><source file='${path}'/><target dev='${target}' bus='virtio'/></disk>`;
  });
  const domain = await connection.defineDomainXml(tinyDomainXml({ name: 'bench', devices: disks.join('') }));
  await domain.create(DomainCreateFlags.START_PAUSED);
  return domain;
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[sorted.length >> 1] ?? Number.NaN;
}

interface Measured {
  readonly seconds: number[];
  daemonSeconds: number;
}

async function compare(runners: Readonly<Record<string, Runner>>, rounds: number, daemonPid: number): Promise<void> {
  const out = (text: string): void => void process.stdout.write(`${text}\n`);
  out('| call | client | calls/s | of python3-libvirt | budget | met | daemon CPU µs/call |');
  out('| --- | --- | ---: | ---: | ---: | --- | ---: |');
  for (const name of Object.keys(COUNTS) as CaseName[]) {
    const count = COUNTS[name];
    const measured = new Map<string, Measured>();
    for (const client of Object.keys(runners)) measured.set(client, { seconds: [], daemonSeconds: 0 });
    for (let round = -WARM_UP_ROUNDS; round < rounds; round++) {
      for (const [client, run] of Object.entries(runners)) {
        const before = cpuSeconds(daemonPid);
        const took = await run(name, count);
        const mine = measured.get(client);
        if (round < 0 || mine === undefined) continue;
        mine.seconds.push(took);
        mine.daemonSeconds += cpuSeconds(daemonPid) - before;
      }
    }
    const python = measured.get('python')?.seconds ?? [];
    for (const [client, mine] of measured) out(renderRow(name, client, mine, python));
  }
}

/** The daemon's own time per call bounds what any number of calls in flight can reach. */
function renderRow(name: CaseName, client: string, mine: Measured, python: readonly number[]): string {
  const count = COUNTS[name];
  const rate = Math.round(count / median(mine.seconds));
  const ratio = median(mine.seconds.map((took, round) => (python[round] ?? Number.NaN) / took));
  const budget = budgetOf(name, client);
  const verdict = budget === undefined ? '' : ratio >= budget ? 'yes' : 'NO';
  const daemon = Math.round((mine.daemonSeconds / (mine.seconds.length * count)) * 1e6);
  const cells = [name, client, String(rate), ratio.toFixed(2), budget?.toFixed(2) ?? '', verdict, String(daemon)];
  return `| ${cells.join(' | ')} |`;
}

/** CPU time of a process so far; the kernel counts in hundredths of a second. */
function cpuSeconds(pid: number): number {
  const stat = readFileSync(`/proc/${String(pid)}/stat`, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

function budgetOf(name: CaseName, client: string): number | undefined {
  if (client === 'python') return undefined;
  if (client === 'node') return SEQUENTIAL_BUDGET;
  return GAINS_IN_PARALLEL.has(name) ? PARALLEL_BUDGET : undefined;
}

async function main(): Promise<void> {
  const obstacle = privateDaemonObstacle();
  if (obstacle !== undefined) {
    process.stdout.write(`libvirt bench skipped: ${obstacle}\n`);
    return;
  }
  await using daemon = await startPrivateDaemon();
  await using connection = await connect({ uri: daemon.uri, socketPath: daemon.socketPath });
  const domain = await startGuest(daemon, connection);
  using python = startPython(`qemu+unix:///system?socket=${daemon.socketPath}`, domain.name);
  const runners = {
    python: python.run,
    node: nodeRunner(connection, domain, 1),
    [`node, ${String(IN_FLIGHT)} in flight`]: nodeRunner(connection, domain, IN_FLIGHT),
  };
  await compare(runners, Number(process.env['BENCH_ROUNDS'] ?? '60'), daemon.pid ?? 0);
}

await main();
process.stdout.write('\n');
await printLeaks();
