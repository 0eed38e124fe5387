import { mkdirSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Writable } from 'node:stream';
import {
  clusterConfig,
  createDomainStore,
  createExpectations,
  createIoErrorRetry,
  createPodInterfaceCache,
  createVmController,
  HandlerError,
  fixedEras,
  Launchers,
  openGhostRecords,
  parseTopology,
  startFakeLauncher,
} from '@virtwire/handler/testing';
import type { NodeParts } from '@virtwire/handler';
import type { FakeLauncher, VmController } from '@virtwire/handler/testing';
import { CMD_RPC_NAMES } from '@virtwire/shared-proto';
import { createLogger } from '@virtwire/telemetry';
import type { Logger } from '@virtwire/telemetry';
import { parseDomainJson } from '@virtwire/vm-model';
import type { Vmi } from '@virtwire/vm-model';
import type { CaseAfter, CaseInput, CasePod, TraceEntry } from './case.ts';
import { connectRecorded, rpcEntry } from './rpc.ts';
import { leaveDeadSocket } from './dead-socket.ts';
import { createParts } from './parts.ts';
import { changes, snapshot } from './root-files.ts';

const SOCKETS = 'volumes/kubernetes.io~empty-dir/sockets';
/** All commands that the handler asks about, enabled. */
const AGENT_COMMANDS = [
  'guest-ping guest-get-time guest-info guest-shutdown guest-network-get-interfaces guest-get-fsinfo',
  'guest-get-host-name guest-get-users guest-get-timezone guest-get-osinfo guest-ssh-get-authorized-keys',
  'guest-ssh-add-authorized-keys guest-ssh-remove-authorized-keys guest-set-user-password guest-exec guest-exec-status',
  'guest-file-open guest-file-close guest-file-read guest-file-write',
].flatMap((line) => line.split(' '));

/** What came out of one pass. */
export interface PassOutcome {
  readonly error: string | null;
  readonly trace: readonly TraceEntry[];
  readonly update: Vmi | undefined;
  readonly stored: Vmi | undefined;
  readonly after: CaseAfter;
}

/** A node with one VM, made of the circumstances of a case. */
export class Scene implements AsyncDisposable {
  readonly #root: string;
  readonly #podsDir: string;
  readonly #domains = createDomainStore();
  readonly #expectations = createExpectations(() => this.#nowMs());
  readonly #ioErrorRetry = createIoErrorRetry();
  readonly #launcherServers = new Map<string, FakeLauncher>();
  readonly #records: ReturnType<typeof openGhostRecords>;
  readonly #launchers: Launchers;
  readonly #controller: VmController;
  #case: CaseInput;
  #trace: TraceEntry[] = [];
  /** What was sent in this pass, and what of it was taken. */
  #sent: Vmi | undefined;
  #accepted: Vmi | undefined;
  #stored: Vmi | undefined;

  private constructor(input: CaseInput) {
    this.#case = input;
    this.#stored = input.vmi ?? undefined;
    this.#root = mkdtempSync('/tmp/vv');
    this.#podsDir = join(this.#root, 'p');
    for (const directory of [this.#podsDir, this.launcherRoot('dev'), this.launcherRoot('var/run/kubevirt')]) {
      mkdirSync(directory, { recursive: true });
    }
    const log = createLogger('virt-handler', { destination: new Writable({ write: (_c, _e, done) => done() }) });
    const privateDir = join(this.#root, 'private');
    for (const record of input.ghostRecords ?? []) {
      const file = join(privateDir, 'ghost-records', record.uid);
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, JSON.stringify({ ...record, socketFile: this.#real(record.socketFile) }));
    }
    this.#records = openGhostRecords(privateDir, this.#podsDir, log);
    const parts = createParts({
      current: () => this.#case,
      launcherRoot: this.launcherRoot(''),
      note: (entry) => void this.#trace.push(entry),
    });
    this.#launchers = new Launchers(
      {
        records: this.#records,
        connect: connectRecorded((entry) => void this.#trace.push(entry)),
        // The cases were recorded with a launcher of v1.9.0.
        eras: fixedEras({ since: 'v1.9.0', until: undefined }),
        openPipe: async (_owner, _launcher, isNonRoot) => {
          const path = '/var/run/kubevirt/domain-notify-pipe.sock';
          if (isNonRoot) this.#trace.push({ kind: 'node', op: 'chownToQemu', path });
          return { [Symbol.asyncDispose]: async () => undefined };
        },
        detectIsolation: (socketFile) => parts.detectIsolation(socketFile),
        now: () => this.#nowMs(),
        log,
      },
      { podsDir: this.#podsDir, nodeName: input.node },
    );
    this.#controller = this.#buildController(parts, log);
  }

  #buildController(parts: NodeParts, log: Logger): VmController {
    const input = this.#case;
    return createVmController({
      source: {
        get: (key) => (this.#case.vmiStore === 'global' ? undefined : this.#find(key)),
        getAnywhere: (key) => this.#find(key),
        update: (vmi) => this.#store(vmi),
      },
      domains: this.#domains,
      records: this.#records,
      launchers: this.#launchers,
      expectations: this.#expectations,
      ioErrorRetry: this.#ioErrorRetry,
      parts,
      podInterfaces: createPodInterfaceCache(parts.network),
      events: {
        event: (object, type, reason, message) => {
          const { namespace, name, uid } = object;
          this.#trace.push({ kind: 'event', object: { namespace, name, uid }, type, reason, message });
        },
      },
      requeue: {
        after: (key, afterMs, isSafetyNet) => {
          if (!isSafetyNet) this.#trace.push({ kind: 'requeue', key, after: afterMs / 1_000 });
        },
        rateLimited: (key) => void this.#trace.push({ kind: 'requeue', key, rateLimited: true }),
      },
      onCleanedUp: () => undefined,
      cluster: () => ({
        config: clusterConfig(this.#case.kubevirt),
        topology: this.#case.capabilitiesXml === undefined ? undefined : parseTopology(this.#case.capabilitiesXml),
        plugins: this.#case.plugins ?? [],
      }),
      nodeName: input.node,
      now: () => this.#nowMs(),
      log,
      host: { cpuModel: input.hostCpuModel ?? '', architecture: 'amd64' },
    });
  }

  /** Makes the node of a case as it is before its first pass. */
  static async open(input: CaseInput): Promise<Scene> {
    const scene = new Scene(input);
    await scene.#prepare();
    return scene;
  }

  /** Key of the VMI. */
  get key(): string {
    const { key, vmi, domain } = this.#case;
    if (key !== undefined) return key;
    const meta = vmi?.metadata ?? (domain as { ObjectMeta?: { namespace: string; name: string } } | null)?.ObjectMeta;
    return `${meta?.namespace ?? ''}/${meta?.name ?? ''}`;
  }

  /** A path below the launcher's root. */
  launcherRoot(relative: string): string {
    return join(this.#root, 'r', relative);
  }

  #rootPath(): string {
    return join(this.#root, 'r');
  }

  /** Runs one pass. */
  async pass(uids: readonly string[]): Promise<PassOutcome> {
    this.#trace = [];
    this.#sent = undefined;
    this.#accepted = undefined;
    const stored = this.#stored;
    let error: string | null = null;
    const before = snapshot(this.#rootPath());
    try {
      await this.#controller.reconcile(this.key, new AbortController().signal);
    } catch (caught) {
      error = caught instanceof Error ? caught.message : String(caught);
    }
    return {
      error,
      trace: this.#trace,
      update: this.#sent,
      stored,
      after: { ...this.#after(uids), filesInLauncherRoot: changes(before, snapshot(this.#rootPath())) },
    };
  }

  /** Goes on to the next pass of a case with several. */
  async advance(step: Partial<CaseInput>): Promise<void> {
    this.#case = { ...this.#case, ...step };
    if (this.#accepted !== undefined) {
      const { metadata } = this.#accepted;
      this.#stored = {
        ...this.#accepted,
        metadata: { ...metadata, resourceVersion: `${metadata.resourceVersion ?? ''}1` },
      };
    }
    this.#expectations.drop(this.key);
    if ('vmi' in step) this.#stored = step.vmi ?? undefined;
    if ('domain' in step) this.#placeDomain();
    if (step.rpc !== undefined) this.#placeAnswers();
    if (step.rootFiles !== undefined) this.#placeFiles(step.rootFiles);
    for (const pod of step.launcher?.pods ?? []) await this.#placePod(pod);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#launchers[Symbol.asyncDispose]();
    for (const server of this.#launcherServers.values()) server.kill();
    rmSync(this.#root, { recursive: true, force: true });
  }

  #nowMs(): number {
    return Date.parse(this.#case.now);
  }

  #find(key: string): Vmi | undefined {
    return key === this.key ? this.#stored : undefined;
  }

  async #store(vmi: Vmi): Promise<Vmi> {
    const { resourceVersion = '' } = vmi.metadata;
    this.#trace.push({ kind: 'update', resource: 'virtualmachineinstances', resourceVersion, subresource: '' });
    this.#sent = structuredClone(vmi);
    const error = this.#case.update?.error;
    if (error === 'conflict') {
      const text = `Operation cannot be fulfilled on virtualmachineinstances.kubevirt.io "${vmi.metadata.name}": the object has been modified; please apply your changes to the latest version and try again`;
      throw new HandlerError('Conflict', text);
    }
    if (error !== undefined) throw new Error(error);
    this.#accepted = this.#sent;
    return vmi;
  }

  async #prepare(): Promise<void> {
    const { launcher = {}, rootFiles = [], vmi, expectationOpen } = this.#case;
    this.#placeFiles(rootFiles);
    this.#placeDomain();
    if (launcher.firstSeen !== undefined && vmi) {
      for (const pod of launcher.pods ?? []) await this.#placePod({ ...pod, socket: 'none' });
      const { now } = this.#case;
      this.#case = { ...this.#case, now: launcher.firstSeen };
      this.#launchers.track(vmi);
      this.#case = { ...this.#case, now };
    }
    for (const pod of launcher.pods ?? []) await this.#placePod(pod);
    if (launcher.connected === true) await this.#connect(launcher.connectedUID);
    if (expectationOpen === true) this.#expectations.expect(this.key);
  }

  #placeFiles(files: NonNullable<CaseInput['rootFiles']>): void {
    for (const file of files) {
      const path = this.launcherRoot(file.path.slice(1));
      mkdirSync(file.dir === true ? path : dirname(path), { recursive: true });
      if (file.dir === true) continue;
      writeFileSync(path, '', { mode: 0o644 });
      truncateSync(path, file.size ?? 0);
    }
  }

  /** Opens the client before the first pass; its steps are not part of any trace. */
  async #connect(uid: string | undefined): Promise<void> {
    const input = this.#case;
    const calm = { ...input };
    delete calm.isolationError;
    this.#case = calm;
    const owner = uid ?? this.#stored?.metadata.uid ?? this.#domainUid();
    const [pod] = input.launcher?.pods ?? [];
    const [namespace = '', name = ''] = this.key.split('/');
    const record = { namespace, name, uid: owner, socketFile: this.#socketOf(pod?.uid ?? '') };
    await this.#launchers.adopt(record, true);
    this.#case = input;
  }

  #domainUid(): string {
    const { domain } = this.#case;
    return domain ? (parseDomainJson(JSON.stringify(domain)).Spec.Metadata.KubeVirt.UID ?? '') : '';
  }

  #placeDomain(): void {
    const { domain } = this.#case;
    if (domain) this.#domains.upsert(parseDomainJson(JSON.stringify(domain)));
    else {
      this.#domains.drop(this.key);
      this.#domains.noteAbsent(this.key); // a store without the domain means that its launcher said so
    }
  }

  #socketOf(podUid: string): string {
    return join(this.#podsDir, podUid, SOCKETS, 'launcher-sock');
  }

  #real(socketFile: string): string {
    return socketFile.replace(/^\/pods/, this.#podsDir);
  }

  async #placePod(pod: CasePod): Promise<void> {
    const socketFile = this.#socketOf(pod.uid);
    const server = this.#launcherServers.get(pod.uid);
    if (pod.socket !== 'serving' && server !== undefined) {
      server.kill();
      this.#launcherServers.delete(pod.uid);
    }
    if (pod.dir === false) rmSync(dirname(socketFile), { recursive: true, force: true });
    if (pod.dir === true) mkdirSync(dirname(socketFile), { recursive: true });
    if (pod.socket === 'none') rmSync(socketFile, { force: true });
    if (pod.socket === 'dead') await leaveDeadSocket(socketFile);
    if (pod.socket === 'serving' && server === undefined) {
      const launcher = await startFakeLauncher(socketFile, (call) => {
        if (call.rpc !== 'Info') this.#trace.push(rpcEntry(call));
      });
      this.#launcherServers.set(pod.uid, launcher);
      this.#placeAnswers();
    }
    if (pod.unresponsiveMarker === true) writeFileSync(join(dirname(socketFile), 'launcher-unresponsive'), '');
  }

  #placeAnswers(): void {
    const supportedCommands = AGENT_COMMANDS.map((name) => ({ name, enabled: true }));
    for (const launcher of this.#launcherServers.values()) {
      for (const rpc of CMD_RPC_NAMES) launcher.answer(rpc, {});
      launcher.versions = [1];
      launcher.answer('GetGuestInfo', { entity: { guestAgentVersion: '8.2.0', supportedCommands } });
      for (const [rpc, answer] of Object.entries(this.#case.rpc ?? {})) {
        if (rpc === 'Info') launcher.versions = answer.versions ?? [1];
        else launcher.answer(rpc as Parameters<FakeLauncher['answer']>[0], answer);
      }
    }
  }

  #after(uids: readonly string[]): CaseAfter {
    const clients = uids.map((uid): [string, CaseAfter['launcherClients'][string]] => {
      const info = this.#launchers.info(uid);
      if (info === undefined) return [uid, null];
      const since = `${new Date(info.notInitializedSinceMs).toISOString().slice(0, 19)}Z`;
      return [uid, { connected: info.client !== undefined, ready: info.isReady, notInitializedSince: since }];
    });
    return {
      domainInStore: this.#domains.get(this.key) !== undefined,
      expectationOpen: this.#expectations.isOpen(this.key),
      ghostRecords: this.#records
        .list()
        .map((record) => ({ ...record, socketFile: record.socketFile.replace(this.#podsDir, '/pods') })),
      launcherClients: Object.fromEntries(clients),
    };
  }
}
