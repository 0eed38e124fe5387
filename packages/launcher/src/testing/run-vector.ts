import { join } from 'node:path';
import type { Domain, KubeVirtMetadata } from '@virtwire/vm-model';
import { emptyDomain, parseJson, renderDomainJson } from '@virtwire/vm-model';
import { cmdV1, createNotifySender, ProtoError } from '@virtwire/shared-proto';
import type { NotifyClient } from '@virtwire/shared-proto';
import { createLogger } from '@virtwire/telemetry';
import type { SyncOptions } from '../cmd-server/complete-options.ts';
import type { LauncherFlags } from '../config/flags.ts';
import { parseFlags } from '../config/flags.ts';
import { launcherPaths } from '../config/paths.ts';
import type { DiskDeps } from '../disks/ports.ts';
import type { ParamValue } from '../domain/libvirt-port.ts';
import type { VmiPreparation } from '../domain/sync.ts';
import type { TargetPreparation } from '../migration/target.ts';
import { textOf } from '../errors.ts';
import type { DomainEvent } from '../events/domain-event.ts';
import { createHandlerLine } from '../events/notify-sender.ts';
import { createGraph } from '../graph.ts';
import type { MetadataCache } from '../metadata/cache.ts';
import type { LauncherGraph } from '../graph.ts';
import { createDiskWorld } from './disk-world.ts';
import type { FakeClock } from './fake-clock.ts';
import { createFakeClock } from './fake-clock.ts';
import type { Script } from './scripted-libvirt.ts';
import { createScriptedLibvirt, raise } from './scripted-libvirt.ts';
import { createScriptedMigration } from './scripted-migration.ts';
import type {
  ScriptChanges,
  ScriptedAnswer,
  TraceEntry,
  VectorInput,
  VectorOptions,
  VectorStep,
} from './vector-types.ts';

const START_MS = Date.parse('2000-01-01T00:00:00Z');
const EVENT_MS = 50;
const NOTIFY_MS = 1;

/** What came of a case. */
export interface VectorResult {
  readonly steps: readonly {
    readonly trace: readonly TraceEntry[];
    readonly response?: unknown;
    readonly error?: string;
  }[];
  readonly metadata: Record<string, unknown>;
  readonly isDeleteTold: boolean;
  readonly domain: { readonly state: number; readonly reason: number } | null;
  readonly aliases: Readonly<Record<string, string>>;
  readonly pausedByRequest: readonly string[];
}

/** What a launcher's pod gives its VM, before and after it has moved. */
export type VectorPreparation = VmiPreparation<SyncOptions> & TargetPreparation;

/** Where a case plays: its file system and its tools. */
export interface VectorWorld {
  readonly root: string;
  readonly deps: Pick<DiskDeps, 'tools' | 'images' | 'paths' | 'qemuUser'>;
}

interface Runner {
  readonly input: VectorInput;
  readonly root: string;
  readonly clock: FakeClock;
  readonly script: Script;
  readonly graph: LauncherGraph;
  trace: TraceEntry[];
  /** Times of the trace count from now on. */
  readonly startStep: () => void;
  /** What happens at given times, counted from now on, begins to happen. */
  readonly startTimeline: () => void;
}

function notifyClient(script: Script, clock: FakeClock, record: (entry: TraceEntry) => void): NotifyClient {
  const answer = async (call: string, entry: TraceEntry) => {
    await clock.sleep(NOTIFY_MS);
    const scripted: ScriptedAnswer = script.answers[call]?.shift() ?? {};
    record({ notify: call, ...entry });
    if (scripted.transport === true) return { ok: false, error: new ProtoError('Disconnected', 'EOF') } as const;
    if (scripted.success === false) {
      const message = scripted.message ?? '';
      return { ok: false, error: new ProtoError('Failed', message, { detail: message }) } as const;
    }
    return { ok: true, value: { success: true, message: '' } } as const;
  };
  const text = (bytes: unknown): string => Buffer.from(bytes as Uint8Array).toString('utf8');
  return {
    socketPath: '',
    version: 1,
    handleDomainEvent: ({ domainJSON, eventType }) =>
      answer('HandleDomainEvent', { eventType, domainJSON: withoutCompleted(parseJson(text(domainJSON))) }),
    handleK8sEvent: ({ eventJSON }) => answer('HandleK8sEvent', { eventJSON: parseJson(text(eventJSON)) }),
    onConnectionLost: () => ({ [Symbol.dispose]: () => undefined }),
    close: () => undefined,
    [Symbol.dispose]: () => undefined,
  };
}

function flagsOf({ config = {}, vmi }: VectorInput, root: string): LauncherFlags {
  const [sys, file, user, version, fsfreeze] = config.agentIntervals ?? [120, 300, 10, 300, 5];
  return parseFlags([
    ...['--name', vmi.metadata.name, '--namespace', vmi.metadata.namespace, '--uid', vmi.metadata.uid],
    ...['--kubevirt-private-dir', join(root, '/var/run/kubevirt-private')],
    ...[
      '--hotplug-disk-dir',
      join(root, '/var/run/kubevirt/hotplug-disks/'),
      '--ovmf-path',
      join(root, config.ovmfPath ?? '/ovmf'),
    ],
    ...(config.runAsNonroot === false ? [] : ['--run-as-nonroot']),
    ...(config.vmStatsCollector === true ? ['--vm-stats-collector'] : []),
    ...(config.libvirtHookServerAndClient === true ? ['--libvirt-hook-server-and-client'] : []),
    ...['--kubevirt-share-dir', join(root, '/var/run/kubevirt')],
    ...['--ephemeral-disk-dir', join(root, '/var/run/kubevirt-ephemeral-disks')],
    ...['--qemu-agent-sys-interval', `${sys}s`, '--qemu-agent-file-interval', `${file}s`],
    ...['--qemu-agent-user-interval', `${user}s`, '--qemu-agent-version-interval', `${version}s`],
    ...['--qemu-fsfreeze-status-interval', `${fsfreeze}s`],
  ]);
}

function createRunner(input: VectorInput, { root, deps }: VectorWorld, preparation: VectorPreparation): Runner {
  const clock = createFakeClock(START_MS);
  const { config = {} } = input;
  const script: Script = { domain: null, answers: {}, agent: {}, guestInfo: undefined };
  let runner: Runner | undefined = undefined;
  let stepStartMs = START_MS;
  const record = (entry: TraceEntry): void => {
    const at = clock.now() - stepStartMs;
    runner?.trace.push(at === 0 ? entry : { at, ...entry });
  };
  const hasAgentDelays = input.guestInfo !== undefined || input.steps.some((step) => step.guestInfo !== undefined);
  const scripted = { script, input, root, clock, record, hasAgentDelays };
  const libvirt = createScriptedLibvirt(scripted);
  const migration = createScriptedMigration(scripted);
  const connect = async (): Promise<NotifyClient> => {
    await clock.sleep(NOTIFY_MS);
    const error = script.answers['NotifyConnect']?.shift()?.error;
    const isDown = clock.now() - START_MS < (config.notifyDownUntilMs ?? 0);
    record({ notify: 'connect', ...(error === undefined && !isDown ? {} : { error: true }) });
    if (error !== undefined || isDown) throw new ProtoError('DialFailed', error?.text ?? 'no such file or directory');
    return notifyClient(script, clock, record);
  };
  const sender = createNotifySender(
    '',
    {},
    { connect, nowMs: () => clock.now(), sleep: (ms, s) => clock.sleep(ms, s) },
  );
  const flags = flagsOf(input, root);
  const log = createLogger('virt-launcher', { destination: { write: () => undefined } });
  const graph = createGraph(flags, launcherPaths(flags), {
    libvirt,
    guestLibvirt: libvirt,
    notify: createHandlerLine('', log, sender),
    preparation,
    migration: { calls: migration.calls, images: deps.images, paths: deps.paths, qemuUser: deps.qemuUser },
    tools: deps.tools,
    clock,
    log,
    writeLine: () => undefined,
    podName: '',
  });
  const removed = { domainName: graph.domainName };
  const startTimeline = (): void => void migration.play(input.timeline ?? [], () => graph.loop.push(removed));
  const startStep = (): void => void (stepStartMs = clock.now());
  runner = { input, root, clock, script, graph, trace: [], startStep, startTimeline };
  return runner;
}

type CellName = Exclude<keyof MetadataCache, 'takeNotification' | 'onNotify' | 'snapshot'>;

function applyChanges({ script, graph }: Runner, changes: ScriptChanges, isStart: boolean): void {
  if (changes.domain !== undefined) script.domain = changes.domain;
  for (const [call, answers] of Object.entries(changes.answers ?? {})) script.answers[call] = [...answers];
  for (const [command, replies] of Object.entries(changes.agent ?? {})) script.agent[command] = [...replies];
  if (changes.guestInfo !== undefined) script.guestInfo = changes.guestInfo;
  const cells: Readonly<Record<string, CellName>> = {
    UID: 'uid',
    GracePeriod: 'gracePeriod',
    Migration: 'migration',
    Backup: 'backup',
    AccessCredential: 'accessCredential',
    MemoryDump: 'memoryDump',
    GuestPanicHandled: 'guestPanicHandled',
  };
  for (const [key, value] of Object.entries(changes.metadata ?? {})) {
    const cell = graph.metadata[cells[key] ?? 'uid'] as { set(v: unknown): void; store(v: unknown): void };
    if (isStart) cell.set(value);
    else cell.store(value);
  }
}

function eventOf(step: VectorStep, own: string): DomainEvent {
  const domainName = step.domainName ?? own;
  if (step.event === 'lifecycle') {
    return { domainName, lifecycle: { event: step.id ?? 0, detail: step.detail ?? 0 } };
  }
  if (step.event === 'agent') return { domainName, agent: { state: step.state ?? 0, reason: step.reason ?? 0 } };
  if (step.event === 'jobCompleted') {
    return { domainName, job: new Map(Object.entries(step.job ?? {}) as [string, ParamValue][]) };
  }
  return { domainName };
}

/** Options of a request from their protobuf JSON; a server completes what is left out. */
function optionsOf(json: VectorOptions | undefined): cmdV1.VirtualMachineOptions {
  const { interfaceDomainAttachment = {}, interfaceMigration = {}, pluginsJson = '', topology, ...rest } = json ?? {};
  return cmdV1.VirtualMachineOptions.fromPartial({
    ...rest,
    interfaceDomainAttachment: new Map(Object.entries(interfaceDomainAttachment)),
    interfaceMigration: new Map(Object.entries(interfaceMigration)),
    pluginsJson: Buffer.from(pluginsJson, 'base64'),
    ...(topology === undefined ? {} : { topology: { numa_cells: topology.numaCells } }),
  });
}

const BYTES_OPTIONS: ReadonlySet<string | undefined> = new Set([
  ...['InjectLaunchSecret', 'BackupVirtualMachine', 'MigrateVirtualMachine'],
]);

/** What a server reads where a request leaves a field out. */
const ABSENT_FIELDS = { unfreezeTimeoutSeconds: 0, timeoutSeconds: 0, domainName: '', Command: '', Args: [] };

function requestOf({ input, root }: Runner, step: VectorStep): unknown {
  const vmi = { vmiJson: Buffer.from(step.rawVmi ?? JSON.stringify(step.vmi ?? input.vmi)) };
  const { dumpPath, checkpoint, ...given } = step.request ?? {};
  const request = { ...ABSENT_FIELDS, ...given };
  if (typeof dumpPath === 'string') return { vmi, ...request, dumpPath: join(root, dumpPath) };
  if (typeof checkpoint === 'string') return { vmi, ...request, checkpoint: Buffer.from(checkpoint, 'base64') };
  if (!BYTES_OPTIONS.has(step.rpc)) return { vmi, options: optionsOf(step.options ?? input.options), ...request };
  const bytes = step.options === undefined ? '' : JSON.stringify(atRoot(step.options, root));
  return { vmi, options: Buffer.from(bytes), ...request };
}

/** Options of a backup whose target lies below the case's root. */
function atRoot(options: VectorOptions & { readonly targetPath?: string }, root: string): unknown {
  return options.targetPath === undefined ? options : { ...options, targetPath: join(root, options.targetPath) };
}

async function callRpc(runner: Runner, step: VectorStep): Promise<unknown> {
  const rpc = step.rpc ?? '';
  const method = rpc.charAt(0).toLowerCase() + rpc.slice(1);
  const handlers = runner.graph.handlers;
  const handler = Reflect.get(handlers, method) as ((request: unknown, context: unknown) => unknown) | undefined;
  if (handler === undefined) throw new Error(`no method ${method}`);
  return handler(requestOf(runner, step), { signal: new AbortController().signal });
}

async function runStep(runner: Runner, step: VectorStep): Promise<{ response?: unknown; error?: string }> {
  const { graph, clock } = runner;
  applyChanges(runner, step, false);
  if (step.rpc !== undefined) {
    try {
      const response = await clock.until(callRpc(runner, step));
      await clock.advance(step.ms ?? 0);
      return { response };
    } catch (caught) {
      await clock.advance(step.ms ?? 0);
      return { error: textOf(caught) };
    }
  }
  if (step.event === 'reconnect') graph.loop.pushReconnect();
  else if (step.event !== undefined) graph.loop.push(eventOf(step, graph.domainName));
  if (step.do === 'MarkGracefulShutdown') {
    graph.metadata.gracePeriod.update((grace) => ({ ...grace, MarkedForGracefulShutdown: true }));
  }
  await clock.advance(step.ms ?? EVENT_MS);
  return {};
}

function metadataOf(graph: LauncherGraph): Record<string, unknown> {
  const domain: Domain = emptyDomain();
  const snapshot: KubeVirtMetadata = graph.metadata.snapshot();
  const text = renderDomainJson({ ...domain, Spec: { ...domain.Spec, Metadata: { KubeVirt: snapshot } } });
  const whole = parseJson(text) as { Spec: { Metadata: { KubeVirt: Record<string, unknown> } } };
  const cells = Object.entries(whole.Spec.Metadata.KubeVirt).filter(([, value]) => value !== null && value !== '');
  const isHandled = graph.metadata.guestPanicHandled.load();
  return { ...Object.fromEntries(cells), ...(isHandled === undefined ? {} : { GuestPanicHandled: isHandled }) };
}

const NO_PREPARATION: VectorPreparation = {
  devices: {
    isReady: () => Promise.resolve(false),
    completeDisk: () => raise({ text: 'this family plugs nothing' }),
    discardDisk: () => Promise.resolve(),
    growth: () => Promise.resolve(undefined),
    completeInterfaces: () => raise({ text: 'this family plugs nothing' }),
    possibleSize: () => Promise.resolve(undefined),
  },
  hostDevices: () => raise({ text: 'this family plugs nothing' }),
  podCpuSet: () => raise({ text: 'this family pins nothing' }),
  convert: () => raise({ text: 'this family converts nothing' }),
  preStart: () => raise({ text: 'this family prepares nothing' }),
  beforeStart: () => Promise.resolve(),
  prepareTarget: () => raise({ text: 'this family prepares nothing' }),
};

/** Plays a case against the launcher's own objects; only libvirt, agent, notify server, tools and clock are stand-ins. */
export async function runVector(
  input: VectorInput,
  preparation: VectorPreparation = NO_PREPARATION,
  given?: VectorWorld,
): Promise<VectorResult> {
  if (given !== undefined) return play(input, preparation, given);
  using world = createDiskWorld(input);
  return await play(input, preparation, world);
}

async function play(input: VectorInput, preparation: VectorPreparation, world: VectorWorld): Promise<VectorResult> {
  const ending = new AbortController();
  try {
    const runner = createRunner(input, world, preparation);
    const { graph, clock } = runner;
    ending.signal.addEventListener('abort', () => graph.stop());
    applyChanges(runner, input, true);
    for (const uid of input.pausedByRequest ?? []) graph.paused.add(uid);
    let isDeleteTold = false;
    void graph.deleteSent.then(() => (isDeleteTold = true));
    if (input.config?.notifier === true) void graph.loop.run(ending.signal);
    await clock.settle();
    runner.startTimeline();
    const steps: VectorResult['steps'][number][] = [];
    for (const step of input.steps) {
      runner.trace = [];
      runner.startStep();
      const outcome = await runStep(runner, step);
      steps.push({ trace: runner.trace, ...outcome });
    }
    const { domain } = runner.script;
    return {
      steps,
      metadata: metadataOf(graph),
      isDeleteTold,
      domain: domain === null ? null : { state: domain.state, reason: domain.reason },
      aliases: Object.fromEntries(graph.sync.aliases()),
      pausedByRequest: graph.paused.uids(),
    };
  } finally {
    ending.abort();
  }
}

/** Launchers from v1.6 on do not print when a migration is complete; ours goes on telling handlers before v1.6. */
function withoutCompleted(domain: unknown): unknown {
  const spec = (domain as { Spec?: { Metadata?: { KubeVirt?: { Migration?: { Completed?: boolean } | null } } } }).Spec;
  delete spec?.Metadata?.KubeVirt?.Migration?.Completed;
  return domain;
}
