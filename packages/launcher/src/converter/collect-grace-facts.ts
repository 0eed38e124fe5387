import { readdir, readFile, readlink, realpath } from 'node:fs/promises';
import { basename, join } from 'node:path/posix';

import { goFileError, isMissing } from '../disks/go-error.ts';
import { textOf } from '../errors.ts';
import { parseCpuSet } from './cpu-set.ts';
import type { GraceDeviceFacts, GraceHostFacts, Known } from './grace-facts.ts';

/** Bits of a line in `resource`: memory; in its low digit, 64 bits and prefetchable. */
const MEMORY_RESOURCE = 0x200n;
const BAR_TYPE_MASK = 0xfn;
const PREFETCHABLE_64 = 0xcn;
/** Directories of a node that hold thousands of entries and no device. */
const UNSEARCHED: ReadonlySet<string> = new Set(['hugepages', 'memory_failure', 'power', 'x86']);
const SEARCH_DEPTH = 2;

/** Where sysfs is; tests have one of their own. */
export interface GraceFactsConfig {
  readonly sysfs: string;
}

/**
 * Reads what sysfs says of a host's Grace GPUs.
 *
 * @param addresses of the PCI devices that may be such GPUs.
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/converter/grace.go, sysfsGraceRuntimeInfoProvider
 */
export async function collectGraceFacts(
  addresses: readonly string[],
  { sysfs }: GraceFactsConfig = { sysfs: '/sys' },
): Promise<GraceHostFacts> {
  const nodes = join(sysfs, 'devices/system/node');
  const initiatorNodes = await known(() => findInitiators(nodes));
  const devices = new Map<string, GraceDeviceFacts>();
  for (const address of addresses) {
    devices.set(address, await deviceFacts(join(sysfs, 'bus/pci/devices', address), address, nodes, initiatorNodes));
  }
  return {
    hasSmmuV3: await known(() => hasSmmuV3(join(sysfs, 'class/iommu'))),
    devices,
    initiatorNodes,
    distances: await readDistances(nodes),
  };
}

async function known<T>(read: () => Promise<T>): Promise<Known<T>> {
  try {
    return { value: await read() };
  } catch (caught) {
    return { failure: textOf(caught) };
  }
}

async function readValue(path: string): Promise<string> {
  try {
    return (await readFile(path, 'utf8')).trim();
  } catch (caught) {
    throw goFileError(caught, 'open', path);
  }
}

async function hasSmmuV3(dir: string): Promise<boolean> {
  const names = await readdir(dir).catch((caught: unknown) => {
    throw goFileError(caught, 'open', dir);
  });
  for (const name of names) {
    const target = await readlink(join(dir, name)).catch(() => '');
    if (`${name} ${target}`.includes('arm-smmu-v3')) return true;
  }
  return false;
}

async function deviceFacts(
  dir: string,
  address: string,
  nodes: string,
  initiators: Known<readonly number[]>,
): Promise<GraceDeviceFacts> {
  return {
    identity: await known(async () => ({
      vendor: await readValue(join(dir, 'vendor')),
      device: await readValue(join(dir, 'device')),
    })),
    numaNode: await known(() => readNumaNode(join(dir, 'numa_node'))),
    barBytes: await known(async () => sumBars(await readValue(join(dir, 'resource')))),
    initiatorNodes:
      'failure' in initiators ? initiators : await known(() => namingNodes(initiators.value, nodes, dir, address)),
  };
}

async function readNumaNode(path: string): Promise<number> {
  const text = await readValue(path);
  const node = Number(text);
  if (!/^[+-]?\d+$/.test(text)) throw new Error(`strconv.Atoi: parsing ${JSON.stringify(text)}: invalid syntax`);
  if (node < 0) throw new Error(`invalid NUMA node ${String(node)}`);
  return node;
}

/** Lines of first address, last address and flags, in hex. */
function sumBars(resource: string): bigint {
  let total = 0n;
  for (const line of resource.split('\n')) {
    const fields = line.trim().split(/\s+/);
    if (fields.length !== 3) continue;
    const [start = 0n, end = 0n, flags = 0n] = fields.map(parseHex);
    const isBar = (flags & MEMORY_RESOURCE) !== 0n && (flags & BAR_TYPE_MASK) === PREFETCHABLE_64;
    if (isBar && start !== 0n && end !== 0n && start <= end) total += end - start + 1n;
  }
  return total;
}

function parseHex(text: string): bigint {
  const digits = text.replace(/^0x/, '');
  if (/^[0-9a-fA-F]{1,16}$/.test(digits)) return BigInt(`0x${digits}`);
  throw new Error(`strconv.ParseUint: parsing ${JSON.stringify(digits)}: invalid syntax`);
}

/** The kernel lists them; one that does not has them as nodes without memory and processors. */
async function findInitiators(nodes: string): Promise<readonly number[]> {
  const list = await readFile(join(nodes, 'has_generic_initiator'), 'utf8').catch((caught: unknown) => {
    if (isMissing(caught)) return undefined;
    throw goFileError(caught, 'open', join(nodes, 'has_generic_initiator'));
  });
  if (list !== undefined) return parseNodes(list.trim());
  const found: number[] = [];
  for (const node of parseNodes(await readValue(join(nodes, 'online')))) {
    if (await isEmptyNode(join(nodes, `node${String(node)}`))) found.push(node);
  }
  return found;
}

function parseNodes(list: string): readonly number[] {
  return [...parseCpuSet(list)].sort((a, b) => a - b);
}

async function isEmptyNode(dir: string): Promise<boolean> {
  const memory = /MemTotal:\s+(\d+)/.exec(await readValue(join(dir, 'meminfo')))?.[1];
  if (memory !== '0') return false;
  const cpus = await readValue(join(dir, 'cpulist'));
  return cpus === '' || cpus === 'none';
}

/** Initiator nodes whose directory leads to the device. */
async function namingNodes(
  initiators: readonly number[],
  nodes: string,
  dir: string,
  address: string,
): Promise<readonly number[]> {
  if (initiators.length === 0) return [];
  const devicePath = await realpath(dir).catch((caught: unknown) => {
    throw goFileError(caught, 'lstat', dir);
  });
  const found: number[] = [];
  for (const node of initiators) {
    if (await leadsTo(join(nodes, `node${String(node)}`), devicePath, address, SEARCH_DEPTH)) found.push(node);
  }
  return found;
}

async function leadsTo(dir: string, devicePath: string, address: string, depth: number): Promise<boolean> {
  const entries = await readdir(dir, { withFileTypes: true }).catch((caught: unknown) => {
    throw goFileError(caught, 'open', dir);
  });
  for (const entry of entries) {
    const path = join(dir, entry.name);
    if (entry.name === address) return true;
    if (entry.isSymbolicLink() && (await linkLeadsTo(path, devicePath, address))) return true;
    const isSearched = depth > 0 && entry.isDirectory() && !UNSEARCHED.has(entry.name);
    if (isSearched && (await leadsTo(path, devicePath, address, depth - 1))) return true;
  }
  return false;
}

async function linkLeadsTo(link: string, devicePath: string, address: string): Promise<boolean> {
  const names = (path: string): boolean => basename(path) === address || path.includes(`/${address}/`);
  if (names(await readlink(link))) return true;
  const resolved = await realpath(link).catch(() => undefined);
  return resolved !== undefined && (resolved === devicePath || names(resolved));
}

async function readDistances(nodes: string): Promise<GraceHostFacts['distances']> {
  const online = await known(async () => parseNodes(await readValue(join(nodes, 'online'))));
  if ('failure' in online) return new Map();
  const distances = new Map<number, Known<ReadonlyMap<number, number>>>();
  for (const node of online.value) {
    const read = async (): Promise<ReadonlyMap<number, number>> => {
      const fields = (await readValue(join(nodes, `node${String(node)}`, 'distance'))).split(/\s+/);
      return new Map(online.value.slice(0, fields.length).map((other, index) => [other, Number(fields[index])]));
    };
    distances.set(node, await known(read));
  }
  return distances;
}
