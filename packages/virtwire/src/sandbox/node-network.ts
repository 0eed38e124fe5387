import { readFileSync, writeFileSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { VirtwireError } from '../errors.ts';
import type { Journal } from '../journal/journal.ts';
import { NODE_OWNER } from '../journal/resource.ts';
import type { RunTool } from '../machine/run-tool.ts';
import { candidateSubnets } from '../state/layout.ts';
import type { NodeLayout } from '../state/layout.ts';
import { renderCniConfig } from './cni.ts';

const FORWARD_SYSCTL = '/proc/sys/net/ipv4/ip_forward';

interface Route {
  readonly dst: string;
}

function toNumber(ip: string): number {
  return ip.split('.').reduce((sum, octet) => sum * 256 + Number(octet), 0);
}

function range(cidr: string): [first: number, last: number] {
  const [ip = '', bits = '32'] = cidr.split('/');
  const size = 2 ** (32 - Number(bits));
  const first = Math.floor(toNumber(ip) / size) * size;
  return [first, first + size - 1];
}

/** True when two IPv4 networks have an address in common. */
export function overlaps(a: string, b: string): boolean {
  const [firstA, lastA] = range(a);
  const [firstB, lastB] = range(b);
  return firstA <= lastB && firstB <= lastA;
}

/**
 * The first candidate that no route of the machine leads to.
 *
 * @throws {VirtwireError} `SandboxFailed` when all are taken.
 */
export function chooseSubnet(seed: number, routes: readonly string[]): string {
  const used = routes.filter((dst) => /^\d/.test(dst));
  for (const subnet of candidateSubnets(seed)) {
    if (!used.some((dst) => overlaps(dst, subnet))) return subnet;
  }
  throw new VirtwireError('SandboxFailed', 'no free pod network in 10.144.0.0 to 10.223.255.0: see `ip route`');
}

/** Masquerading and forwarding of the pods of one bridge, as one table of our own. */
export function renderNatTable(bridge: string, subnet: string): string {
  return `table ip ${bridge}
delete table ip ${bridge}
table ip ${bridge} {
  chain postrouting {
    type nat hook postrouting priority srcnat; policy accept;
    ip saddr ${subnet} oifname != "${bridge}" masquerade
  }
  chain forward {
    type filter hook forward priority filter; policy accept;
    iifname "${bridge}" accept
    oifname "${bridge}" accept
  }
}
`;
}

/**
 * Makes what all pods of the node share: the CNI configuration, the masquerading table, IP forwarding. The bridge itself
 * is made by the plugin with the first pod.
 *
 * @returns path of the CNI configuration.
 */
export async function ensureNodeNetwork(run: RunTool, journal: Journal, layout: NodeLayout): Promise<string> {
  const configFile = join(layout.cniDir, 'bridge.conf');
  const before = readFileSync(FORWARD_SYSCTL, 'utf8');
  if (journal.entries(NODE_OWNER).some((entry) => entry.resource.kind === 'nft')) return configFile;
  const routes = JSON.parse(await run('ip', ['-j', '-4', 'route', 'show', 'table', 'all'])) as Route[];
  const subnet = chooseSubnet(
    layout.seed,
    routes.map((route) => route.dst),
  );
  mkdirSync(layout.cniDir, { recursive: true });
  const config = renderCniConfig({ bridge: layout.bridge, subnet, leasesDir: join(layout.cniDir, 'leases') });
  writeFileSync(configFile, JSON.stringify(config, null, 2));
  journal.record(NODE_OWNER, { kind: 'sysctl', path: FORWARD_SYSCTL, before });
  journal.record(NODE_OWNER, { kind: 'link', name: layout.bridge });
  journal.record(NODE_OWNER, { kind: 'nft', family: 'ip', table: layout.bridge });
  await run('nft', ['-f', '-'], { input: renderNatTable(layout.bridge, subnet) });
  return configFile;
}
