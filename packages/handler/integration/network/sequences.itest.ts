import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { brotliDecompressSync } from 'node:zlib';
import { NetworkNamespace, RouteSocket, runTool, startProcess } from '@virtwire/host';
import { createLogger } from '@virtwire/telemetry';
import { parseVmiJson, renderJson } from '@virtwire/vm-model';
import { expect, test } from 'vitest';
import { hasErrorCode } from '../../src/errors.ts';
import { createNetworkPart } from '../../src/prepare/network/network-part.ts';
import type { PodNetwork } from '../../src/prepare/network/state.ts';
import type { NetworkPart } from '../../src/prepare/parts.ts';
import { networksToStart, networksToUpdate } from '../../src/vmi/networks.ts';

interface Step {
  readonly op: 'setup' | 'restartHandler' | 'teardown' | 'shell';
  readonly caller?: 'start' | 'live-update' | 'migration-target';
  readonly vmi?: unknown;
  readonly commands?: readonly string[];
}

interface LinkAfter {
  readonly name: string;
  readonly kind: string;
  readonly up: boolean;
  readonly mac: string;
  readonly mtu: number;
  readonly master?: string;
  readonly learning?: boolean;
  readonly tap?: { readonly user: number; readonly group: number };
  readonly addresses: readonly string[];
}

interface Result {
  readonly networks?: readonly string[] | null;
  readonly outcome?: string;
  readonly error?: string;
  readonly critical?: boolean;
  readonly links: readonly LinkAfter[];
  readonly ruleset?: readonly string[];
}

interface Input {
  readonly env: Readonly<Record<string, string>>;
  readonly config: { readonly bindings?: Readonly<Record<string, { readonly domainAttachmentType?: string }>> };
  readonly podNetwork: PodNetwork;
  readonly steps: readonly Step[];
}

/**
 * Cases in which ours differs on purpose: what Go loses or repeats when its files are lost is found in the namespace
 * (rules are not made twice), and the stand-in of a pod link keeps the pod link's MAC.
 */
const BETTER = new Set(['006-bridge-no-ip-state-lost', '013-ordinal-hotplug', '015-managed-tap-unplug']);

const CASES = readCases();

test.each([...CASES.keys()])('%s', async (name) => {
  const { input, output } = CASES.get(name) as { input: Input; output: readonly Result[] };
  await using pod = await createPod(input.podNetwork);
  const create = (): NetworkPart =>
    createNetworkPart(
      { log: createLogger('virt-handler', { destination: { write: () => undefined } }) },
      {
        privateDir: path.join(pod.directory, 'private'),
        ownPodIp: input.env['MY_POD_IP'],
        bindingPlugins: () => input.config.bindings ?? {},
        portRanges: () => false,
      },
    );
  let part = create();
  let isAhead = false;
  for (const [i, step] of input.steps.entries()) {
    const wanted = output[i];
    if (wanted === undefined) throw new Error(`no result for step ${i}`);
    if (step.op === 'restartHandler') part = create();
    else if (step.op === 'shell') await shell(pod.namespace, step.commands ?? []);
    else await runStep(part, step, wanted, pod.launcher, `step ${i}`);
    // A plan that cannot work is refused as a whole; Go has made a part of it by then.
    if (wanted.outcome === 'error') isAhead = true;
    else if (wanted.outcome === 'applied') isAhead = false;
    if (!isAhead) {
      const strip = (l: object): object => (BETTER.has(name) ? { ...l, mac: 'any' } : l);
      const expected = wanted.links.map((l) => comparable(l)).sort(byName);
      expect(linksOf(pod).map(strip), `step ${i}`).toEqual(expected.map(strip));
    }
    if (wanted.ruleset === undefined) continue;
    const rules = (await runTool('nft', ['--stateless', 'list', 'ruleset'], { network: pod.namespace })).stdout;
    expect(
      rules
        .trim()
        .split('\n')
        .filter((l) => l !== ''),
      `step ${i}`,
    ).toEqual(unrepeated(wanted.ruleset));
  }
});

async function runStep(
  part: NetworkPart,
  step: Step,
  wanted: Result,
  launcher: { pid: number; ppid: number; rootPath: string },
  where: string,
): Promise<void> {
  const vmi = parseVmiJson(renderJson(step.vmi));
  if (step.op === 'teardown') return await part.tearDown(vmi);
  const networks = step.caller === 'start' ? networksToStart(vmi) : networksToUpdate(vmi);
  expect(networks, where).toEqual(wanted.networks ?? []);
  const error: unknown = await part.setUp(vmi, networks, launcher).then(
    () => undefined,
    (caught: unknown) => caught,
  );
  // Where Go can only refuse, ours finishes what was begun.
  const fails = wanted.outcome === 'error' && !String(wanted.error).includes('cannot be restarted');
  expect(error instanceof Error ? 'error' : 'fine', `${where} ${String(error)}`).toBe(fails ? 'error' : 'fine');
  if (error instanceof Error) expect(hasErrorCode(error, 'CriticalNetwork'), where).toBe(wanted.critical);
}

/** Go appends rules again when it has lost its files. */
function unrepeated(ruleset: readonly string[]): string[] {
  const plain = ruleset.map((l) => l.replace(/ packets \d+ bytes \d+/, '')).filter((l) => l !== '');
  let [table, chain] = ['', ''];
  const seen = new Set<string>();
  return plain.filter((line) => {
    if (line.startsWith('table')) [table, chain] = [line, ''];
    else if (line.startsWith('\tchain')) chain = line;
    if (!line.startsWith('\t\t')) return true;
    const key = [table, chain, line].join('\n');
    const isNew = !seen.has(key);
    seen.add(key);
    return isNew;
  });
}

/** What of a link can be compared: random MACs, indexes and negotiated states cannot. */
function comparable(link: LinkAfter): object {
  const { name, up, mtu, master, learning, tap, addresses } = link;
  const isRandom = link.mac.startsWith('0e:00:');
  return {
    name,
    kind: link.kind === 'dummy' && !up ? 'bridge' : link.kind === 'dummy' ? 'veth' : link.kind,
    up,
    mtu,
    master,
    learning,
    tap: tap === undefined ? undefined : { user: tap.user, group: tap.group },
    mac: isRandom ? 'random' : link.mac,
    addresses: addresses.filter((a) => !a.startsWith('fe80')),
  };
}

function linksOf(pod: Pod): object[] {
  const links = pod.routes.links();
  const addresses = pod.routes.addresses();
  return links
    .filter((l) => !/^q\d+$/.test(l.name))
    .map((l) => ({
      name: l.name,
      kind: l.kind === '' ? 'loopback' : l.kind,
      up: l.isUp,
      mtu: l.mtu,
      master: links.find((m) => m.index === l.masterIndex)?.name,
      learning: l.learning,
      tap: l.tun === undefined ? undefined : { user: l.tun.uid, group: l.tun.gid },
      mac: /^02:00:|^0a:58:|^02:5e:|^00:00:/.test(l.mac) ? l.mac : 'random',
      addresses: addresses
        .filter((a) => a.linkIndex === l.index && !a.ip.startsWith('fe80'))
        .map((a) => `${a.ip}/${a.prefixLength}`),
    }))
    .sort(byName);
}

function byName(a: object, b: object): number {
  return (a as { name: string }).name.localeCompare((b as { name: string }).name);
}

interface Pod extends AsyncDisposable {
  readonly directory: string;
  readonly namespace: NetworkNamespace;
  readonly routes: RouteSocket;
  readonly launcher: { readonly pid: number; readonly ppid: number; readonly rootPath: string };
}

async function createPod(network: PodNetwork): Promise<Pod> {
  await using made = new AsyncDisposableStack();
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'virtwire-sequence-'));
  made.defer(() => fs.rmSync(directory, { recursive: true }));
  const file = path.join(directory, 'net');
  const rootPath = path.join(directory, 'root');
  fs.mkdirSync(path.join(rootPath, 'var/run/kubevirt-private'), { recursive: true });
  const namespace = NetworkNamespace.create(file);
  made.defer(() => {
    NetworkNamespace.remove(file);
  });
  made.use(namespace);
  const routes = made.use(RouteSocket.open(namespace));
  const { launcher } = namespace.run(() => ({ launcher: startProcess('sleep', ['600']) }));
  const process = await launcher;
  made.defer(async () => {
    process.kill('SIGKILL');
    await process.exited;
  });
  const withoutDad = 'sysctl -qw net.ipv6.conf.all.accept_dad=0 net.ipv6.conf.default.accept_dad=0';
  await shell(namespace, [withoutDad, 'ip link set lo up']);
  await shell(namespace, network.interfaces.filter((l) => l.name !== 'lo').flatMap(commandsFor));
  const gateways = (network.routes.running ?? []).filter((r) => r['next-hop-address'] !== undefined);
  await shell(
    namespace,
    gateways.map(
      (r) => `ip route add ${r.destination} via ${r['next-hop-address']} dev ${r['next-hop-interface']} onlink`,
    ),
  );
  const stack = made.move();
  return {
    directory,
    namespace,
    routes,
    launcher: { pid: process.pid, ppid: 1, rootPath },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

function commandsFor(link: PodNetwork['interfaces'][number]): string[] {
  const { name, index = 0, mtu = 1500 } = link;
  const addresses = [...(link.IPv4.address ?? []), ...(link.IPv6.address ?? [])].filter(
    (a) => !a.IP.startsWith('fe80'),
  );
  return [
    `ip link add name ${name} index ${index} address ${link['mac-address']} mtu ${mtu} type veth peer name q${index} index ${100 + index}`,
    `ip link set q${index} up`,
    `ip link set ${name} up`,
    ...addresses.map((a) => `ip addr add ${a.IP}/${a['prefix-length']} dev ${name}`),
  ];
}

async function shell(network: NetworkNamespace, commands: readonly string[]): Promise<void> {
  for (const command of commands) {
    const [file = '', ...args] = command.split(' ');
    await runTool(file, args, { network });
  }
}

function readCases(): Map<string, { input: Input; output: readonly Result[] }> {
  const bundle = path.resolve(import.meta.dirname, '../../../../testdata/network-sequences.ndjson.br');
  const entries = brotliDecompressSync(fs.readFileSync(bundle)).toString('utf8').trim().split('\n').map((l) => JSON.parse(l) as { path: string; json: unknown }); // prettier-ignore
  const json = new Map(entries.map((e) => [e.path, e.json]));
  const names = new Set(entries.filter((e) => e.path.includes('/')).map((e) => path.dirname(e.path)));
  return new Map(
    [...names].map((name) => [
      name,
      { input: json.get(`${name}/input.json`) as Input, output: json.get(`${name}/output.json`) as Result[] },
    ]),
  );
}
