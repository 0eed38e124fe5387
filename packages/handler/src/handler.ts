import * as fs from 'node:fs';
import * as path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { SafePath } from '@virtwire/host';
import { WorkQueue } from '@virtwire/kube';
import { createNotifyPipe } from '@virtwire/notify-pipe-proxy';
import { objectFields } from '@virtwire/telemetry';
import type { Logger } from '@virtwire/telemetry';
import { clusterConfig } from './cluster-config.ts';
import type { ClusterConfig } from './cluster-config.ts';
import type { HandlerConfig } from './config.ts';
import { createDomainStore } from './domain-watch/domain-store.ts';
import { DomainWatch } from './domain-watch/domain-watch.ts';
import { errorText } from './errors.ts';
import type { EventRecorder } from './events/recorder.ts';
import { openGhostRecords } from './ghost-records/ghost-records.ts';
import type { GhostRecords } from './ghost-records/ghost-records.ts';
import { serveHealth } from './health/health.ts';
import { openLauncherEras } from './launchers/launcher-eras.ts';
import type { LauncherEras } from './launchers/launcher-eras.ts';
import { connectLauncher } from './launchers/launcher.ts';
import { Launchers } from './launchers/launchers.ts';
import type { OpenPipe } from './launchers/launchers.ts';
import { isFinal, isNonRoot, objectKey } from './model.ts';
import { createEventHandlers } from './notify-server/event-handlers.ts';
import { createNotifyGate } from './notify-server/notify-gate.ts';
import type { NotifyGate } from './notify-server/notify-gate.ts';
import { warmUpConnections } from './notify-server/warm-up.ts';
import { createNodeParts } from './prepare/node-parts.ts';
import { missingParts } from './prepare/missing-parts.ts';
import type { NodeParts, OptionalParts } from './prepare/parts.ts';
import { warmUp } from './prepare/warm-up.ts';
import { createPodInterfaceCache } from './status/pod-interface-cache.ts';
import { createVmController } from './vmi/controller.ts';
import type { VmController } from './vmi/controller.ts';
import { createExpectations } from './vmi/expectations.ts';
import { createIoErrorRetry } from './vmi/io-error-retry.ts';
import type { ClusterFacts } from './vmi/observed.ts';
import type { VmiSource } from './vmi-source/source.ts';

/** What a handler needs from outside. */
export interface HandlerDeps {
  readonly source: VmiSource;
  readonly events: EventRecorder;
  readonly log: Logger;
  /** Facts of the cluster; default: KubeVirt's built-in configuration, no topology, no plugins. */
  readonly cluster?: () => ClusterFacts;
  /** Node-side work that replaces the real one of this package. */
  readonly parts?: Partial<NodeParts>;
}

/** A running handler. Stopping it never touches a VM. */
export interface Handler {
  /** Resolves when events are accepted and the workers run; domains may still be unknown. */
  start(): Promise<void>;
  /** Stops workers, closes connections and sockets; bounded to 10 s. Ghost records stay. */
  stop(): Promise<void>;
  /** Rejects when the handler cannot go on (notify server failed ten times in a row). */
  readonly failed: Promise<never>;
  /** Optional node parts that this build does not have of its own, whatever it was given. */
  readonly missingParts: readonly (keyof OptionalParts)[];
}

const DRAIN_LIMIT_MS = 5_000;
const SWEEP_PERIOD_MS = 180_000;
const QEMU_ID = 107;
const ARCHITECTURES: Readonly<Record<string, string>> = { x64: 'amd64', arm64: 'arm64', s390x: 's390x' };

/** Opens pipes that lead straight to the notify server, each through the door of its VMI. */
function pipeOpener(gate: NotifyGate, log: Logger): OpenPipe {
  return async (owner, launcher, nonRoot) => {
    const { namespace, name, uid } = owner;
    const door = gate.openDoor({ namespace, name, uid });
    const pipeLog = log.child(objectFields({ kind: 'VirtualMachineInstance', metadata: owner }));
    try {
      using root = SafePath.openRoot(launcher.rootPath);
      const pipe = await createNotifyPipe(
        { log: pipeLog, sink: (connection) => door.accept(connection) },
        { pod: { root }, ...(nonRoot ? { owner: { uid: QEMU_ID, gid: QEMU_ID } } : {}) },
      );
      return {
        [Symbol.asyncDispose]: async () => {
          await pipe.close();
          door[Symbol.dispose]();
        },
      };
    } catch (error) {
      door[Symbol.dispose]();
      throw error;
    }
  };
}

class HandlerProcess implements Handler {
  readonly #deps: HandlerDeps;
  readonly #config: HandlerConfig;
  readonly #queue: WorkQueue;
  readonly #domains = createDomainStore();
  readonly #expectations = createExpectations(Date.now);
  readonly #ioErrorRetry = createIoErrorRetry();
  readonly #gate: NotifyGate;
  readonly #eras: LauncherEras;
  readonly #launchers: Launchers;
  readonly #watch: DomainWatch;
  readonly #controller: VmController;
  readonly #stop = new AbortController();
  readonly #stack = new AsyncDisposableStack();
  readonly missingParts: Handler['missingParts'];
  #isServing = false;

  constructor(deps: HandlerDeps, config: HandlerConfig) {
    this.#deps = deps;
    this.#config = config;
    const { log, events, source } = deps;
    fs.mkdirSync(config.privateDir, { recursive: true, mode: 0o755 });
    this.#queue = new WorkQueue({
      onFailure: (key, error) => log.info({ reason: errorText(error) }, `re-enqueuing VirtualMachineInstance ${key}`),
      onRefused: (key) => log.error(`the work queue is full, ${key} has to wait for the next event`),
    });
    const getVmi = (key: string) => source.getAnywhere(key);
    this.#gate = createNotifyGate(
      {
        handlers: createEventHandlers({
          store: this.#domains,
          getVmi,
          events,
          log,
          onDomainJson: (uid, json) => this.#eras.noteDomain(uid, json),
        }),
        events,
        node: { kind: 'Node', namespace: '', name: config.nodeName, uid: '' },
        now: Date.now,
        log,
      },
      config.shareDir,
    );
    const cluster = deps.cluster ?? defaultCluster();
    const settings = (): ClusterConfig => cluster().config;
    const { privateDir, ownPodIp } = config;
    const own = createNodeParts({ config: settings, events, log }, { privateDir, ownPodIp });
    const parts: NodeParts = { ...own, ...deps.parts };
    this.missingParts = missingParts(own);
    const records = openGhostRecords(config.privateDir, config.podsDir, log);
    const recorded = new Set(records.list().map(({ uid }) => uid));
    this.#eras = openLauncherEras(config.privateDir, (uid) => recorded.has(uid), log);
    this.#launchers = this.#buildLaunchers(parts, records);
    this.#watch = new DomainWatch(
      {
        store: this.#domains,
        records,
        launchers: this.#launchers,
        connect: connectLauncher,
        isNonRoot: (record) => {
          const vmi = getVmi(objectKey(record));
          return vmi === undefined || isNonRoot(vmi);
        },
        now: Date.now,
        log,
      },
      { watchdogTimeoutMs: config.watchdogTimeoutMs, resyncPeriodMs: config.domainResyncPeriodMs },
    );
    this.#controller = this.#buildController(parts, records, cluster);
  }

  get failed(): Promise<never> {
    return this.#gate.failed;
  }

  async start(): Promise<void> {
    const { source, log } = this.#deps;
    if (this.#config.health !== undefined) {
      this.#stack.use(await serveHealth(this.#config.health, () => this.#health()));
    }
    this.#stack.use(this.#gate);
    await this.#gate.start();
    const warm = warmUpConnections(this.#config.shareDir, log);
    this.#stack.defer(() => warm);
    this.#isServing = true;
    await source.synced;
    this.#stack.use(this.#launchers);
    this.#stack.use(this.#watch);
    this.#watch.start();
    for (const vmi of source.list()) if (!isFinal(vmi)) this.#domains.noteUnasked(objectKey(vmi.metadata));
    this.#stack.use(this.#domains.watch((key) => void this.#queue.add(key)));
    this.#stack.use(source.watch((event) => this.#onVmi(event.type, objectKey(event.vmi.metadata))));
    log.info('Starting virt-handler vms controller.');
    for (const vmi of source.list()) this.#queue.add(objectKey(vmi.metadata));
    // VMs whose VMI was deleted while no handler ran.
    for (const key of this.#domains.keys()) if (source.get(key) === undefined) this.#queue.add(key);
    const { signal } = this.#stop;
    const work = async (key: string, ended: AbortSignal): Promise<undefined> => {
      await this.#controller.reconcile(key, ended);
    };
    const run = this.#queue.run(work, { workers: this.#config.workers, signal });
    this.#stack.defer(() => run);
    void this.#sweep();
    void warmUp(path.join(this.#config.shareDir, 'domain-notify.sock'), log);
  }

  async stop(): Promise<void> {
    this.#isServing = false;
    await this.#queue.shutDown({ drain: AbortSignal.timeout(DRAIN_LIMIT_MS) });
    this.#stop.abort();
    await this.#stack.disposeAsync();
  }

  #onVmi(type: 'added' | 'modified' | 'deleted', key: string): void {
    this.#expectations.drop(key);
    if (type === 'deleted') this.#domains.forget(key);
    this.#queue.add(key);
  }

  #health() {
    const queued = this.#queue.length;
    return { launchers: this.#launchers.size, queued, isServingEvents: this.#isServing };
  }

  async #sweep(): Promise<void> {
    const { signal } = this.#stop;
    while (!signal.aborted) {
      await sleep(SWEEP_PERIOD_MS, undefined, { signal, ref: false }).catch(() => undefined);
      this.#ioErrorRetry.sweep(Date.now());
    }
  }

  #buildLaunchers(parts: NodeParts, records: GhostRecords): Launchers {
    const { podsDir, nodeName } = this.#config;
    const { log } = this.#deps;
    return new Launchers(
      {
        records,
        connect: connectLauncher,
        eras: this.#eras,
        openPipe: pipeOpener(this.#gate, log),
        detectIsolation: (socketFile) => parts.detectIsolation(socketFile),
        now: Date.now,
        log,
        onGone: (record) => this.#watch.markGone(record),
        onSocket: (key) => void this.#queue.add(key),
      },
      { podsDir, nodeName },
    );
  }

  #buildController(parts: NodeParts, records: GhostRecords, cluster: () => ClusterFacts): VmController {
    const podInterfaces = createPodInterfaceCache(parts.network);
    return createVmController({
      source: this.#deps.source,
      domains: this.#domains,
      records,
      launchers: this.#launchers,
      expectations: this.#expectations,
      ioErrorRetry: this.#ioErrorRetry,
      parts,
      podInterfaces,
      events: this.#deps.events,
      requeue: {
        after: (key, afterMs) => void this.#queue.addAfter(key, afterMs),
        rateLimited: (key) => void this.#queue.addRateLimited(key),
      },
      onCleanedUp: (vmi) => podInterfaces.drop(vmi.metadata.uid),
      cluster,
      nodeName: this.#config.nodeName,
      now: Date.now,
      log: this.#deps.log,
      host: { cpuModel: this.#config.hostCpuModel, architecture: ARCHITECTURES[process.arch] ?? process.arch },
    });
  }
}

function defaultCluster(): () => ClusterFacts {
  const facts: ClusterFacts = { config: clusterConfig(), topology: undefined, plugins: [] };
  return () => facts;
}

/** Builds a handler; nothing is touched but its own directories until {@link Handler.start}. */
export function createHandler(deps: HandlerDeps, config: HandlerConfig): Handler {
  return new HandlerProcess(deps, config);
}
