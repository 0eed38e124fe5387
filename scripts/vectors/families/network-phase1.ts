import {
  createNetworkPart,
  HandlerError,
  type NetworkFiles,
  networksToStart,
  networksToUpdate,
  type PodNetwork,
} from '@virtwire/handler/testing';
import { createLogger } from '@virtwire/telemetry';
import { parseVmiJson, renderJson, type Vmi } from '@virtwire/vm-model';
import type { Files } from '../../testdata/bundle.ts';
import { diffJson, diffKeyOrder } from '../compare.ts';
import { caseNames, type CaseResult, runCase } from '../family.ts';
import { asPodKernel, FakeKernel, type Fault, Faults } from './network-kernel.ts';

interface Input {
  readonly caller: 'start' | 'live-update' | 'migration-target';
  readonly launcherPid: number;
  readonly env: Readonly<Record<string, string>>;
  readonly config: {
    readonly bindings?: Readonly<Record<string, { readonly domainAttachmentType?: string }>>;
    readonly portRangesSpec?: boolean;
  };
  readonly vmi: unknown;
  readonly podNetwork: PodNetwork;
  readonly files?: Readonly<Record<string, unknown>>;
  readonly faults?: readonly Fault[];
}

interface Output {
  readonly networks: readonly string[] | null;
  readonly outcome: 'applied' | 'nothing-to-do' | 'error';
  readonly error?: { readonly message: string; readonly critical: boolean };
  readonly desired?: unknown;
  readonly calls?: readonly (readonly string[])[];
  readonly nft?: readonly (readonly string[])[];
  readonly sysctlWrites?: readonly (readonly [string, string])[];
  readonly statesAfter: Readonly<Record<string, number>>;
  readonly filesAfter: Readonly<Record<string, unknown>>;
  readonly olderFiles?: Readonly<Record<string, { readonly MAC: unknown }>>;
}

const PRIVATE_DIR = '/var/run/kubevirt-private';
const NODE_DIR = `${PRIVATE_DIR}/network-info-cache`;

/** Calls whose failure is worded by a part of Go's that has no counterpart here (a helper program, the netlink library). */
const OWN_WORDS = new Set(['virt-chroot', 'writeFile', 'chownQemu']);

/**
 * Equal are: the networks chosen, outcome, error text and whether it is critical, the desired state with its key order,
 * the links after replaying both lists of calls on the same fake kernel, settings, the nft commands in order, the states
 * and the files (text, key order). A list of link calls may be shorter than Go's. The node's own journal and, where Go
 * v1.9 writes none, the file for older launchers are left out; of the latter only the MAC is compared.
 */
export async function* runNetworkPhase1(files: Files): AsyncIterable<CaseResult> {
  for (const name of caseNames(files)) {
    const input = files.json(`${name}/input.json`) as Input;
    const output = files.json(`${name}/output.json`) as Output;
    yield await runCase(name, () => runOne(input, output));
  }
}

interface Outcome {
  readonly kernel: FakeKernel;
  readonly wasEntered: boolean;
  readonly error: unknown;
  readonly desired: unknown;
  readonly files: ReadonlyMap<string, string>;
}

async function runOne(input: Input, output: Output): Promise<readonly string[]> {
  const vmi = parseVmiJson(renderJson(input.vmi));
  const networks = networksOf(input.caller, vmi);
  const differences = [...diffJson(output.networks ?? [], networks, 'networks')];
  const found = await setUp(input, vmi, networks);
  return [...differences, ...diffOutcome(input, output, found), ...diffKernel(input, output, found), ...diffFiles(output, found)]; // prettier-ignore
}

function networksOf(caller: Input['caller'], vmi: Vmi): readonly string[] {
  if (caller === 'start') return networksToStart(vmi);
  if (caller === 'live-update') return networksToUpdate(vmi);
  return (vmi.spec.networks ?? []).map((n) => n.name);
}

async function setUp(input: Input, vmi: Vmi, networks: readonly string[]): Promise<Outcome> {
  const faults = new Faults(input.faults ?? []);
  const kernel = new FakeKernel(input.podNetwork, faults);
  const files = new Map(
    Object.entries(input.files ?? {}).map(([path, v]) => [path, typeof v === 'string' ? v : renderJson(v)]),
  );
  const lines: string[] = [];
  let wasEntered = false;
  let error: unknown;
  const podDir = `/proc/${String(input.launcherPid)}/root${PRIVATE_DIR}`;
  const part = createNetworkPart(
    {
      log: createLogger('virt-handler', { destination: { write: (line: string) => void lines.push(line) } }),
      ports: {
        nodeFiles: memoryFiles(files, NODE_DIR, faults),
        podFiles: () => memoryFiles(files, podDir, faults),
        openKernel: () => {
          wasEntered = true;
          return asPodKernel(kernel, input.podNetwork, faults);
        },
      },
    },
    {
      privateDir: PRIVATE_DIR,
      ownPodIp: input.env['MY_POD_IP'],
      bindingPlugins: () => input.config.bindings ?? {},
      portRanges: () => input.config.portRangesSpec === true,
    },
  );
  try {
    const launcher = { pid: input.launcherPid, ppid: 1, rootPath: `/proc/${String(input.launcherPid)}/root` };
    await part.setUp(vmi, networks, launcher);
  } catch (caught) {
    error = caught;
  }
  const prefix = 'Desired pod network: ';
  const messages = lines.map((line) => (JSON.parse(line) as { msg: string }).msg);
  const desired = messages.find((msg) => msg.startsWith(prefix))?.slice(prefix.length);
  return { kernel, wasEntered, error, files, desired: desired === undefined ? undefined : JSON.parse(desired) };
}

function memoryFiles(files: Map<string, string>, directory: string, faults: Faults): NetworkFiles {
  return {
    read: (path) => files.get(`${directory}/${path}`),
    write(path, text) {
      const full = `${directory}/${path}`;
      if (isOurs(full)) return void files.set(full, text);
      faults.check('writeFile', [full]);
      files.set(full, text);
      faults.check('chownQemu', [full]);
    },
    remove(path) {
      const full = `${directory}/${path}`;
      if (!isOurs(full)) faults.check('removeAll', [full]);
      for (const name of files.keys()) if (name === full || name.startsWith(`${full}/`)) files.delete(name);
    },
  };
}

/** Files that Go v1.9 does not have. */
function isOurs(path: string): boolean {
  return path.endsWith('/.virtwire.json') || path.includes('/interface-cache-');
}

function diffOutcome(input: Input, output: Output, found: Outcome): readonly string[] {
  const { error, wasEntered } = found;
  const outcome = error !== undefined ? 'error' : wasEntered ? 'applied' : 'nothing-to-do';
  const differences = [...diffJson(output.outcome, outcome, 'outcome')];
  if (output.error === undefined || !(error instanceof HandlerError)) return differences;
  if (output.error.message.includes('panic:')) return differences;
  differences.push(...diffJson(output.error.critical, error.code === 'CriticalNetwork', 'critical'));
  const isFree = (input.faults ?? []).some((f) => OWN_WORDS.has(f.call)) || /undefined binding|unmarshaling/.test(error.message); // prettier-ignore
  const plain = (text: string): string => text.replaceAll(/0x[0-9a-f]+|0x<address>/g, '0x');
  if (!isFree) differences.push(...diffJson(plain(output.error.message), plain(error.message), 'error'));
  return differences;
}

function diffKernel(input: Input, output: Output, found: Outcome): readonly string[] {
  const { desired, kernel, error } = found;
  if (output.error?.message.includes('panic:') === true) return [];
  const differences = [...diffJson(output.desired, desired, 'desired'), ...diffKeyOrder(output.desired, desired)];
  if (error !== undefined) return differences;
  const model = new FakeKernel(input.podNetwork, new Faults([]));
  for (const call of output.calls ?? []) model.call(call);
  differences.push(...diffJson(model.links(), kernel.links(), 'links'));
  differences.push(...diffJson(output.nft ?? [], kernel.nft, 'nft'));
  differences.push(...diffJson(settings(input, model), settings(input, kernel), 'sysctl'));
  return differences;
}

/** Settings after the calls: a value that was there before need not be written. */
function settings(input: Input, kernel: FakeKernel): unknown {
  const { ipv4, ipv6 } = input.podNetwork['linux-stack'];
  const ofLinks = input.podNetwork.interfaces
    .filter((l) => l['linux-stack']['ip4-route-local-net'] === true)
    .map((l) => [`net/ipv4/conf/${l.name}/route_localnet`, '1'] as const);
  return {
    ...Object.fromEntries(ofLinks),
    'net/ipv4/ip_forward': ipv4.forwarding === true ? '1' : '0',
    'net/ipv6/conf/all/forwarding': ipv6.forwarding === true ? '1' : '0',
    'net/ipv4/conf/all/arp_ignore': String(ipv4['arp-ignore'] ?? 0),
    ...Object.fromEntries(kernel.sysctls),
  };
}

function diffFiles(output: Output, found: Outcome): readonly string[] {
  if (output.error?.message.includes('panic:') === true) return [];
  const present = new Map([...found.files].filter(([path]) => !isOurs(path)));
  const wanted = Object.entries(output.filesAfter);
  const differences = diffJson(wanted.map(([path]) => path).sort(), [...present.keys()].sort(), 'files').slice();
  for (const [path, value] of wanted) {
    const text = present.get(path);
    if (text === undefined || typeof value === 'string') continue;
    const parsed: unknown = JSON.parse(text);
    differences.push(...diffJson(value, parsed, path), ...diffKeyOrder(value, parsed, path));
  }
  for (const [path, { MAC }] of Object.entries(output.olderFiles ?? {})) {
    const text = found.files.get(path);
    const mac: unknown = text === undefined ? undefined : (JSON.parse(text) as { MAC: unknown }).MAC;
    if (text !== undefined) differences.push(...diffJson(MAC, mac, path));
  }
  return differences;
}
