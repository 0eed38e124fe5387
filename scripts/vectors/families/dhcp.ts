import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createNetworkPart, type NetworkFiles, networksToStart, type PodNetwork } from '@virtwire/handler/testing';
import {
  createAnswerer,
  createAnswerer6,
  createGuestNetwork,
  type Dhcp6ServerConfig,
  type DhcpPlan,
  type DhcpServerConfig,
  type PodLinks,
} from '@virtwire/launcher';
import { createLogger } from '@virtwire/telemetry';
import { parseVmiJson, renderJson, type Vmi } from '@virtwire/vm-model';
import type { Files } from '../../testdata/bundle.ts';
import { diffJson } from '../compare.ts';
import { caseNames, type CaseResult, runCase } from '../family.ts';
import { asPodKernel, FakeKernel, Faults } from './network-kernel.ts';

interface Packet {
  readonly title: string;
  readonly payload: string;
  readonly v6?: boolean;
  readonly src?: string;
  readonly srcPort?: number;
}

interface Input {
  readonly vmi: unknown;
  readonly podNetwork: PodNetwork;
  readonly resolvConf: string;
  readonly hostname: string;
  readonly files: readonly string[];
  readonly tap: string;
  readonly packets: readonly Packet[];
}

interface Output {
  readonly domainInterfaces?: Readonly<Record<string, unknown>>;
  readonly files?: readonly string[];
  readonly replies: readonly {
    readonly answers: readonly { readonly dst: string; readonly dstPort: number; readonly payload: string }[];
  }[];
  readonly crash?: string;
}

const log = createLogger('virt-launcher', { destination: { write: () => undefined } });

/**
 * Phase 1 runs on the fake kernel of network-phase1, phase 2 on its result. Equal are: MAC, MTU and target of the
 * domain's interfaces, the files left behind, and for each packet whether it is answered, to whom, and the payload with
 * the DHCPv4 options after 53, 54, 51 as a set. A case that ends Go's process must fail with the same text, except for
 * a packet that does (it must not be answered). Addresses of frames are the kernel's work and not looked at.
 */
export async function* runDhcp(files: Files): AsyncIterable<CaseResult> {
  for (const name of caseNames(files)) {
    const input = files.json(`${name}/input.json`) as Input;
    const output = files.json(`${name}/output.json`) as Output;
    yield await runCase(name, () => runOne(input, output));
  }
}

async function runOne(input: Input, output: Output): Promise<readonly string[]> {
  const directory = mkdtempSync(join(tmpdir(), 'virtwire-dhcp-'));
  try {
    const found = await prepare(input, directory);
    if (output.crash !== undefined && !output.crash.includes('interface conversion')) {
      return diffJson(output.crash, found.error ?? 'no error', 'crash');
    }
    if (found.error !== undefined) return [`failed: ${found.error}`];
    const differences = output.crash === undefined ? diffResult(output, found, directory) : [];
    return [...differences, ...diffAnswers(input, output, found)];
  } finally {
    rmSync(directory, { recursive: true });
  }
}

interface Found {
  readonly error?: string;
  readonly interfaces: Readonly<Record<string, unknown>>;
  readonly plans: readonly DhcpPlan[];
}

async function prepare(input: Input, directory: string): Promise<Found> {
  const vmi = parseVmiJson(renderJson(input.vmi));
  const kernel = await phaseOne(input, vmi, directory);
  for (const name of input.files) writeFileSync(join(directory, name), '');
  writeFileSync(`${directory}.resolv`, input.resolvConf);
  const plans: DhcpPlan[] = [];
  const network = createGuestNetwork(
    {
      log,
      onFailure: () => undefined,
      readLinks: () => linksOf(kernel),
      startServers: async (plan) => {
        if (plan.v4 !== undefined) createAnswerer(plan.v4);
        plans.push(plan);
        return [];
      },
    },
    { privateDir: directory, resolvConfPath: `${directory}.resolv`, hostname: input.hostname },
  );
  const specs = vmi.spec.domain.devices.interfaces ?? [];
  try {
    const attachments = Object.fromEntries(specs.map((i) => [i.name, 'tap']));
    const done = await network.prepare(vmi, specs.map((i) => ({ Alias: { Name: i.name } })), attachments); // prettier-ignore
    const interfaces = done.map((i) => [i.Alias?.Name, { mac: i.MAC?.MAC, mtu: i.MTU?.Size, target: i.Target }]);
    return { interfaces: Object.fromEntries(interfaces) as Found['interfaces'], plans };
  } catch (caught) {
    return { interfaces: {}, plans, error: caught instanceof Error ? caught.message : String(caught) };
  } finally {
    rmSync(`${directory}.resolv`);
  }
}

async function phaseOne(input: Input, vmi: Vmi, directory: string): Promise<FakeKernel> {
  const faults = new Faults([]);
  const kernel = new FakeKernel(input.podNetwork, faults);
  mkdirSync(directory, { recursive: true });
  const memory = new Map<string, string>();
  const nodeFiles: NetworkFiles = {
    read: (path) => memory.get(path),
    write: (path, text) => void memory.set(path, text),
    remove: (path) => void memory.delete(path),
  };
  const podFiles: NetworkFiles = {
    read: () => undefined,
    write: (path, text) => path.startsWith('vif-cache-') && writeFileSync(join(directory, path), text),
    remove: () => undefined,
  };
  const part = createNetworkPart(
    {
      log,
      ports: { nodeFiles, podFiles: () => podFiles, openKernel: () => asPodKernel(kernel, input.podNetwork, faults) },
    },
    { privateDir: '/', ownPodIp: '10.244.0.2', bindingPlugins: () => ({}), portRanges: () => false },
  );
  await part.setUp(vmi, networksToStart(vmi), { pid: 1, ppid: 1, rootPath: '/' });
  return kernel;
}

function linksOf(kernel: FakeKernel): PodLinks {
  const plain = { kind: '', isUp: true, operationalState: 'up', masterIndex: undefined, learning: undefined, tun: undefined } as const; // prettier-ignore
  const table = kernel.table();
  return {
    links: table.map(({ name, index, mac, mtu }) => ({ ...plain, name, index, mac, mtu })),
    addresses: table.flatMap(({ index, addresses }) =>
      addresses.map((cidr) => {
        const [ip = '', length = '0'] = cidr.split('/');
        return { linkIndex: index, family: ip.includes(':') ? 6 : 4, ip, prefixLength: Number(length) } as const;
      }),
    ),
  };
}

function diffResult(output: Output, found: Found, directory: string): readonly string[] {
  return [
    ...diffJson(output.domainInterfaces ?? {}, found.interfaces, 'domainInterfaces'),
    ...diffJson(output.files ?? [], readdirSync(directory).sort(), 'files'),
  ];
}

function diffAnswers(input: Input, output: Output, found: Found): readonly string[] {
  const bridge = `k6t-${input.tap === 'tap0' ? 'eth0' : input.tap.slice(3)}`;
  const plan = found.plans.find((p) => (p.v4 ?? p.v6)?.bridge === bridge) ?? {};
  // What ended Go's process must not be answered; what comes after it got no answer there, and gets one here.
  const packets = output.crash === undefined ? input.packets : input.packets.slice(0, 1);
  return packets.flatMap((packet, i) => {
    const expected = (output.replies[i]?.answers ?? []).map(({ dst, dstPort, payload }) => {
      return { dst, dstPort, payload: packet.v6 === true ? payload : sorted(payload) };
    });
    return diffJson(expected, packet.v6 === true ? answers6(packet, plan.v6) : answers4(packet, plan.v4), packet.title);
  });
}

function answers4(packet: Packet, config: DhcpServerConfig | undefined): readonly unknown[] {
  if (config === undefined) return [];
  const from = { address: packet.src ?? '0.0.0.0', port: packet.srcPort ?? 68 };
  // With the bridge binding the pod's kernel holds the leased address and drops what claims to come from it.
  if (config.clientMac !== undefined && from.address === config.clientAddress) return [];
  const answer = createAnswerer(config)(Buffer.from(packet.payload, 'hex'), from);
  if (answer === undefined) return [];
  return [{ dst: answer.to.address, dstPort: answer.to.port, payload: sorted(answer.payload.toString('hex')) }];
}

function answers6(packet: Packet, config: Dhcp6ServerConfig | undefined): readonly unknown[] {
  if (config === undefined) return [];
  const from = { address: packet.src ?? '', port: packet.srcPort ?? 546 };
  const answer = createAnswerer6(config)(Buffer.from(packet.payload, 'hex'), from);
  if (answer === undefined) return [];
  return [{ dst: answer.to.address, dstPort: answer.to.port, payload: answer.payload.toString('hex') }];
}

/** The payload with its options after the first three sorted by code. */
function sorted(hex: string): string {
  const bytes = Buffer.from(hex, 'hex');
  const options: Buffer[] = [];
  let at = 240;
  while (bytes[at] !== undefined && bytes[at] !== 255) {
    const end = at + 2 + (bytes[at + 1] ?? 0);
    options.push(bytes.subarray(at, end));
    at = end;
  }
  const rest = options.slice(3).sort((a, b) => (a[0] ?? 0) - (b[0] ?? 0));
  return Buffer.concat([bytes.subarray(0, 240), ...options.slice(0, 3), ...rest, bytes.subarray(at)]).toString('hex');
}
