import type { Logger } from '@virtwire/telemetry';
import { startSpan } from '@virtwire/telemetry';
import { errorText, HandlerError } from '../../errors.ts';
import type { Vmi } from '../../model.ts';
import type { Isolation } from '../parts.ts';
import { interfacesOf } from './binding.ts';
import type { BindingPluginType, NetworkInterface } from './binding.ts';
import { composeDesired } from './compose.ts';
import { renderDhcpFile, renderInterfaceFile } from './dhcp-file.ts';
import { discover } from './discover.ts';
import type { Discovered } from './discover.ts';
import { readJournal, writeJournal } from './journal.ts';
import type { PendingSetup } from './journal.ts';
import { masqueradeRules, renderNftScript } from './masquerade-rules.ts';
import { hashedNameOf } from './names.ts';
import { planNetwork } from './plan.ts';
import type { NetworkOp } from './plan.ts';
import type { NetworkFiles, NetworkPorts, PodKernel } from './ports.ts';
import type { PodNetwork } from './state.ts';
import { NETWORK_STATE, orderedInterface, parseStateFile, renderStateFile } from './state-file.ts';
import type { StateFile } from './state-file.ts';

/** The outside world of a set-up. */
export interface SetUpDeps {
  readonly log: Logger;
  readonly ports: NetworkPorts;
}

/** Settings of a set-up. */
export interface SetUpOptions {
  readonly ownPodIp: string | undefined;
  readonly bindingPlugins: () => Readonly<Record<string, BindingPluginType>>;
  readonly portRanges: () => boolean;
}

/** What is to be set up, and where. */
export interface SetUpRequest {
  readonly vmi: Vmi;
  readonly networks: readonly string[];
  readonly launcher: Isolation;
}

interface Job extends SetUpRequest {
  readonly log: Logger;
  readonly options: SetUpOptions;
  readonly interfaces: readonly NetworkInterface[];
  readonly nodeFiles: NetworkFiles;
  readonly podFiles: NetworkFiles;
  readonly states: ReadonlyMap<string, number>;
}

/**
 * Prepares the pod's network namespace for the named networks. A finished network is left alone, one of another pod of
 * the same VMI starts anew, one that a dead node agent left half done is finished from its journal.
 *
 * @throws {HandlerError} `CriticalNetwork` when the namespace may be half changed and cannot be set right.
 * @source KubeVirt v1.9.0 pkg/network/setup/netpod/netpod.go:150
 */
export async function setUpNetwork(deps: SetUpDeps, options: SetUpOptions, request: SetUpRequest): Promise<void> {
  const { vmi, networks, launcher } = request;
  if (networks.length === 0) return;
  const interfaces = interfacesOf(vmi, networks, options.bindingPlugins());
  const { nodeFiles } = deps.ports;
  const journal = readJournal(nodeFiles, vmi.metadata.uid);
  const stored = readStates(nodeFiles, vmi, interfaces);
  if (decideWork(interfaces, stored) === 'nothing' && journal === undefined) return;
  using kernel = deps.ports.openKernel(launcher);
  const isOtherPod = journal !== undefined && journal.pod !== kernel.identity;
  if (isOtherPod) nodeFiles.remove(vmi.metadata.uid);
  const states = isOtherPod ? new Map(interfaces.map((i) => [i.network.name, NETWORK_STATE.pending])) : stored;
  const job: Job = { ...request, log: deps.log, options, interfaces, nodeFiles, states, podFiles: deps.ports.podFiles(launcher) }; // prettier-ignore
  const work = decideWork(interfaces, states);
  if (work === 'nothing') return;
  if (work === 'cut short') await resume(job, kernel, isOtherPod ? undefined : journal?.pending);
  else await configure(job, kernel);
}

type Work = 'nothing' | 'cut short' | 'set up';

function decideWork(interfaces: readonly NetworkInterface[], states: ReadonlyMap<string, number>): Work {
  const stateOf = (i: NetworkInterface): number => states.get(i.network.name) ?? NETWORK_STATE.pending;
  const isAbsent = (i: NetworkInterface): boolean => i.iface.state === 'absent';
  if (interfaces.some((i) => !isAbsent(i) && stateOf(i) === NETWORK_STATE.started)) return 'cut short';
  const hasWork = interfaces.some((i) => isAbsent(i) === stateOf(i) > NETWORK_STATE.pending);
  return hasWork ? 'set up' : 'nothing';
}

function readStates(files: NetworkFiles, vmi: Vmi, interfaces: readonly NetworkInterface[]): Map<string, number> {
  return new Map(
    interfaces.map(({ network }) => {
      const file = readState(files, vmi, network.name);
      return [network.name, file.networkState ?? NETWORK_STATE.pending];
    }),
  );
}

function readState(files: NetworkFiles, vmi: Vmi, network: string): StateFile {
  const doing = 'failed to read pod interface network state from cache';
  const text = wrap(doing, () => files.read(`${vmi.metadata.uid}/${network}`));
  if (text === undefined) return {};
  return wrap(`${doing}: error unmarshaling cached object`, () => parseStateFile(text));
}

/** The normal way: look, tell the launcher, mark, change, mark. */
async function configure(job: Job, kernel: PodKernel): Promise<void> {
  const { log, vmi, interfaces, nodeFiles, states } = job;
  const current = kernel.read();
  log.info(`Current pod network: ${JSON.stringify(current)}`);
  for (const found of discover({ vmi, interfaces, current, ownPodIp: job.options.ownPodIp })) store(job, found);
  const pending = namesIn(job, NETWORK_STATE.pending).filter((n) => !isAbsent(job, n));
  const goal = attempt(() => decideGoal(job, current, pending));
  if ('value' in goal) {
    writeJournal(nodeFiles, vmi.metadata.uid, { pod: kernel.identity, pending: goal.value });
  }
  mark(job, pending, NETWORK_STATE.started);
  if ('error' in goal) throw critical(log, goal.error);
  await reach(job, kernel, current, goal.value, await familiesWithRules(kernel, current, goal.value));
  finish(job, kernel, pending);
  for (const { network, iface } of interfaces) {
    if (iface.state === 'absent' && (states.get(network.name) ?? 0) > 0) forget(job, network.name);
  }
}

/** Finishes what a node agent that died has begun. Without its goal there is no telling what it changed. */
async function resume(job: Job, kernel: PodKernel, pending: PendingSetup | undefined): Promise<void> {
  const { log, interfaces } = job;
  const started = namesIn(job, NETWORK_STATE.started).filter((n) => !isAbsent(job, n));
  if (pending === undefined || started.some((n) => !pending.networks.includes(n))) {
    const networks = interfaces.filter((i) => started.includes(i.network.name)).map((i) => describe(i));
    const text = `preparation for networks [${networks.join(' ')}] cannot be restarted`;
    throw new HandlerError('CriticalNetwork', `Critical network error: ${text}`);
  }
  log.info('finishing a pod network set-up that was cut short');
  const current = kernel.read();
  await reach(job, kernel, current, pending, await familiesWithRules(kernel, current, pending));
  finish(job, kernel, started);
  // Networks that were asked for in addition are set up now.
  const states = readStates(job.nodeFiles, job.vmi, interfaces);
  if (decideWork(interfaces, states) === 'set up') await configure({ ...job, states }, kernel);
}

/**
 * Families whose rules are there from an earlier set-up, whose state may be lost: rules are appended, so they must not be
 * made twice. They come last, so without the bridge there are none, and a first start need not ask.
 */
async function familiesWithRules(kernel: PodKernel, current: PodNetwork, goal: PendingSetup): Promise<Set<string>> {
  const found = new Set<string>();
  const bridges = (goal.desired.interfaces ?? []).filter((i) => i.type === 'bridge').map((i) => i.name);
  if (!current.interfaces.some((i) => bridges.includes(i.name))) return found;
  for (const family of ['ip', 'ip6'] as const) {
    const isWanted = goal.nft.some((words) => words[2] === family);
    if (isWanted && (await kernel.hasRules(family))) found.add(family);
  }
  return found;
}

function decideGoal(job: Job, current: PodNetwork, networks: readonly string[]): PendingSetup {
  const { vmi, interfaces, launcher, options } = job;
  const desired = composeDesired({ vmi, interfaces, current, launcherPid: launcher.pid });
  const nft = masqueradeRules({ vmi, interfaces, current, desired, portRanges: options.portRanges() });
  return { networks, desired, nft };
}

/** @param done families whose rules are there already. */
async function reach(
  job: Job,
  kernel: PodKernel,
  current: PodNetwork,
  goal: PendingSetup,
  done: ReadonlySet<string>,
): Promise<void> {
  const { log } = job;
  log.info(`Desired pod network: ${JSON.stringify(goal.desired)}`);
  const span = startSpan(log, 'pod network configured');
  try {
    for (const op of planNetwork(current, goal.desired)) await applyOp(kernel, op);
    const rules = goal.nft.filter((words) => !done.has(words[2] ?? ''));
    if (rules.length > 0) await kernel.runNft(renderNftScript(rules));
  } catch (caught) {
    throw critical(log, caught);
  }
  span.end();
}

/** Adds to a failure what was tried, in KubeVirt's words. */
async function applyOp(kernel: PodKernel, op: NetworkOp): Promise<void> {
  try {
    await kernel.apply(op);
  } catch (caught) {
    if (op.kind === 'sysctl') throw caught;
    const name = op.kind === 'linkRename' ? op.to : op.name;
    const doing = op.kind === 'linkDelete' ? `failed to delete link [${name}]` : `failed to setup link [${name}]`;
    const detail = op.kind === 'addrDelete' ? `failed to delete IP address ${op.cidr} from link ${name}: ` : '';
    throw new HandlerError('Internal', `${doing}: ${detail}${errorText(caught)}`, { cause: caught });
  }
}

function finish(job: Job, kernel: PodKernel, networks: readonly string[]): void {
  try {
    mark(job, networks, NETWORK_STATE.finished);
    writeJournal(job.nodeFiles, job.vmi.metadata.uid, { pod: kernel.identity });
  } catch (caught) {
    const text = `failed to mark configuration as finished for ${networks.join(', ')}: ${errorText(caught)}`;
    throw new HandlerError('CriticalNetwork', `Critical network error: ${text}`, { cause: caught });
  }
}

function store(job: Job, found: Discovered): void {
  const { vmi, nodeFiles, podFiles } = job;
  const [podIP] = found.podIps;
  const iface = vmi.spec.domain.devices.interfaces?.find((i) => i.name === found.network);
  if (podIP !== undefined && iface !== undefined) {
    const { networkState } = readState(nodeFiles, vmi, found.network);
    const file: StateFile = { iface: orderedInterface(iface), podIP, podIPs: found.podIps };
    writeState(job, found.network, networkState === undefined ? file : { ...file, networkState });
  }
  const dhcp = found.dhcp?.();
  if (dhcp === undefined) return;
  podFiles.write(`vif-cache-${found.podLink}.json`, renderDhcpFile(dhcp.facts));
  if (dhcp.mac !== undefined) podFiles.write(`interface-cache-${found.network}.json`, renderInterfaceFile(dhcp.mac));
}

function mark(job: Job, networks: readonly string[], networkState: number): void {
  for (const network of networks) {
    writeState(job, network, { ...readState(job.nodeFiles, job.vmi, network), networkState });
  }
}

function writeState(job: Job, network: string, state: StateFile): void {
  const file = `${job.vmi.metadata.uid}/${network}`;
  wrap('error writing cached object', () => job.nodeFiles.write(file, renderStateFile(state)));
}

/** Removes what the launcher and the node remember of an unplugged interface. */
function forget(job: Job, network: string): void {
  const { vmi, podFiles, nodeFiles } = job;
  const found = vmi.spec.networks?.find((n) => n.name === network);
  if (found !== undefined) podFiles.remove(`vif-cache-${hashedNameOf(vmi, found)}.json`);
  podFiles.remove(`interface-cache-${network}.json`);
  nodeFiles.remove(`${vmi.metadata.uid}/${network}`);
}

function namesIn(job: Job, state: number): string[] {
  return [...job.states].filter(([, s]) => s === state).map(([name]) => name);
}

function isAbsent(job: Job, network: string): boolean {
  return job.interfaces.some((i) => i.network.name === network && i.iface.state === 'absent');
}

/** A network as Go prints its structure, with a made-up address for what is set. */
function describe({ network }: NetworkInterface): string {
  const pointer = (value: object | undefined): string => (value === undefined ? '<nil>' : '0xc000000000');
  return `{${network.name} {${pointer(network.pod)} ${pointer(network.multus)} ${pointer(network.resourceClaim)}}}`;
}

function critical(log: Logger, caught: unknown): HandlerError {
  log.error({ reason: caught }, 'failed to configure pod network');
  return new HandlerError('CriticalNetwork', `Critical network error: ${errorText(caught)}`, { cause: caught });
}

function attempt<T>(action: () => T): { readonly value: T } | { readonly error: unknown } {
  try {
    return { value: action() };
  } catch (error) {
    return { error };
  }
}

function wrap<T>(doing: string, action: () => T): T {
  try {
    return action();
  } catch (caught) {
    throw new HandlerError('Internal', `${doing}: ${errorText(caught)}`, { cause: caught });
  }
}
