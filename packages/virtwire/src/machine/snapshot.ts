import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { listProcesses, readCommandLine, readMounts } from '@virtwire/host';
import type { RunTool } from './run-tool.ts';

/** What a VM may leave on a machine, one line each: `netns NAME`, `mount PATH (type)`, `process PID command`, ... */
export type Snapshot = readonly string[];

const CGROUP_ROOT = '/sys/fs/cgroup';
const CGROUP_DEPTH = 4;
const COMMAND_CHARS = 160;

function cgroupLines(directory: string, depth: number): string[] {
  if (depth === 0) return [];
  let names: string[];
  try {
    names = readdirSync(directory, { withFileTypes: true }).flatMap((entry) =>
      entry.isDirectory() ? [entry.name] : [],
    );
  } catch {
    return []; // removed while we walked
  }
  return names.flatMap((name) => {
    const path = `${directory}/${name}`;
    return [`cgroup ${path}`, ...cgroupLines(path, depth - 1)];
  });
}

function processLines(): string[] {
  return listProcesses().flatMap(({ pid, state }) => {
    if (state === 'Z') return [];
    try {
      const cgroups = [...new Set(readFileSync(`/proc/${pid}/cgroup`, 'utf8').match(/:\/[^\n]+/g))].join(' ');
      return [`process ${pid} ${readCommandLine(pid).join(' ').slice(0, COMMAND_CHARS)} in ${cgroups}`];
    } catch {
      return []; // ended while we walked
    }
  });
}

function socketLines(): string[] {
  const paths = readFileSync('/proc/net/unix', 'utf8').match(/ \/\S+$/gm) ?? [];
  return [...new Set(paths)].map((path) => `socket${path}`);
}

async function networkLines(run: RunTool): Promise<string[]> {
  const links = JSON.parse(await run('ip', ['-j', 'link', 'show'])) as {
    readonly ifname: string;
    readonly master?: string;
  }[];
  const tables = (await run('nft', ['list', 'tables'])).trim();
  return [
    ...links.map(({ ifname, master }) => `link ${ifname}${master === undefined ? '' : ` (on ${master})`}`),
    ...(tables === '' ? [] : tables.split('\n').map((line) => line.replace(/^table/, 'nft'))),
    `sysctl net.ipv4.ip_forward=${readFileSync('/proc/sys/net/ipv4/ip_forward', 'utf8').trim()}`,
  ];
}

function directoryLines(): string[] {
  return ['/run', '/run/netns'].flatMap((directory) => {
    if (!existsSync(directory)) return [];
    const kind = directory === '/run/netns' ? 'netns' : 'path';
    return readdirSync(directory).map((name) => (kind === 'netns' ? `netns ${name}` : `path ${directory}/${name}`));
  });
}

/** Lists what is on the machine now. Needs root for the whole picture. */
export async function takeSnapshot(run: RunTool): Promise<Snapshot> {
  const mounts = readMounts().map(({ mountPoint, fsType }) => `mount ${mountPoint} (${fsType})`);
  const lines = [
    ...directoryLines(),
    ...mounts,
    ...cgroupLines(CGROUP_ROOT, CGROUP_DEPTH),
    ...socketLines(),
    ...processLines(),
    ...(await networkLines(run)),
  ];
  return lines.sort();
}

/**
 * What is there after that was not there before.
 *
 * @param marks names of what the compared work may make (state directory, bridge, pod UIDs ...); other programs on the
 * machine make and remove things too, so only lines that hold a mark count. Without marks every line counts.
 */
export function findLeftovers(before: Snapshot, after: Snapshot, marks?: readonly string[]): string[] {
  const known = new Set(before);
  return after.filter((line) => !known.has(line) && (marks === undefined || marks.some((mark) => line.includes(mark))));
}
