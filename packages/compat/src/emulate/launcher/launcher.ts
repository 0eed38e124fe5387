import { renameSync } from 'node:fs';
import { join } from 'node:path';

import type {
  EmulatedLauncher,
  EmulatedLauncherOptions,
  LauncherState,
  LifeCycle,
  RecordedCall,
  SentEvent,
} from '../api.ts';
import type { LineFacts } from '../facts/line-facts.ts';
import { factsOf } from '../lines/lines.ts';
import { createRecorder, type Recorder } from '../recorder.ts';
import { openReleaseSchema, type Fields, type ReleaseRpc, type ReleaseSchema } from '../schema/release-schema.ts';
import { GRPC } from '../transport/grpc-frames.ts';
import { type GrpcServer, type IncomingCall, type OutgoingAnswer, serveGrpc } from '../transport/grpc-server.ts';
import { createWaiter, type Waiter } from '../waiter.ts';
import { answerCmd, type CmdContext } from './cmd-rpcs.ts';
import { shapeDomainJson } from './domain-shape.ts';
import { createNotifier, type Notifier } from './notifier.ts';
import { ProcessCrash, Refusal, StatusFailure } from './outcome.ts';
import { aliases, Vm } from './vm.ts';
import { VmMigration } from './vm-migration.ts';

const LIFE_CYCLE: Required<LifeCycle> = {
  startMs: 10,
  shutdownMs: 20,
  agentMs: 'never',
  migrationMs: 30,
  exitMs: 100,
};

/** How long the end waits for the last event. @source wire.md 7 Launcher side */
const LAST_EVENT_LIMIT_MS = 15_000;

/** RPCs that answer failures with a gRPC error. @source wire.md 2 Errors */
const STATUS_RPCS: readonly string[] = ['Exec', 'GuestPing', 'GetVMStats'];

/** RPCs that run one at a time. @source wire.md 2 Concurrency */
const LOCKED_RPCS: readonly string[] = [
  'SyncVirtualMachine',
  'PauseVirtualMachine',
  'UnpauseVirtualMachine',
  'ShutdownVirtualMachine',
  'SyncVirtualMachineCPUs',
  'SyncVirtualMachineMemory',
];

/**
 * Starts a launcher of a release line: its socket appears by rename when it serves.
 *
 * @throws {CompatError} `ServeFailed`.
 */
export async function startEmulatedLauncher(options: EmulatedLauncherOptions): Promise<EmulatedLauncher> {
  const launcher = new Launcher(options);
  await launcher.serve();
  return launcher;
}

class Launcher implements EmulatedLauncher {
  readonly line: EmulatedLauncherOptions['line'];
  readonly release: string;
  readonly cmdSocket: string;
  readonly #options: EmulatedLauncherOptions;
  readonly #facts: LineFacts;
  readonly #schema: ReleaseSchema;
  readonly #recorder: Recorder;
  readonly #waiter: Waiter;
  readonly #notifier: Notifier;
  readonly #vm: Vm;
  readonly #migration: VmMigration;
  readonly #context: CmdContext;
  readonly #ended = new AbortController();
  readonly #timers = new Set<NodeJS.Timeout>();
  #server: GrpcServer | undefined;
  #process: LauncherState['process'] = 'running';
  #crashReason: string | undefined;
  #lock: Promise<unknown> = Promise.resolve();
  #hung: PromiseWithResolvers<undefined> | undefined;
  #isTerminating = false;

  constructor(options: EmulatedLauncherOptions) {
    this.#options = options;
    this.line = options.line;
    this.#facts = factsOf(options.line, options.patch);
    this.release = this.#facts.release.value;
    this.cmdSocket = join(options.socketsDir, this.#facts.launcher.cmdSocket.value.name);
    this.#schema = openReleaseSchema(this.release);
    this.#waiter = createWaiter(() => this.#describe());
    this.#recorder = createRecorder(() => this.#waiter.changed());
    this.#notifier = createNotifier({
      facts: this.#facts,
      schema: this.#schema,
      shareDir: options.shareDir,
      signal: this.#ended.signal,
      record: (call) => this.#recorder.record(call),
      onOutcome: (event, isFinal) => this.#onOutcome(event, isFinal),
    });
    this.#vm = new Vm({
      facts: this.#facts.launcher,
      identity: options.vmi,
      lifeCycle: { ...LIFE_CYCLE, ...options.lifeCycle },
      onEvent: (type) => this.#sendDomain(type),
      onK8sEvent: (reason, message) => this.#sendK8sEvent(reason, message),
      after: (delayMs, run) => this.#after(delayMs, run),
      now: () => Date.now(),
    });
    this.#migration = new VmMigration(this.#vm, options.faults ?? {});
    this.#context = {
      facts: this.#facts.launcher,
      vm: this.#vm,
      migration: this.#migration,
      podName: options.podName ?? '',
      collectsStats: options.collectsStats ?? false,
      renderDomain: () => this.domainJson(),
      exitEarly: () => this.#after(1, () => void this.#end('stopped', undefined)),
    };
  }

  async serve(): Promise<void> {
    const { initName } = this.#facts.launcher.cmdSocket.value;
    const initPath = join(this.#options.socketsDir, initName);
    this.#server = await serveGrpc(initPath, (call) => this.#answer(call));
    renameSync(initPath, this.cmdSocket);
  }

  get calls(): readonly RecordedCall[] {
    return this.#recorder.calls;
  }

  get events(): readonly SentEvent[] {
    return this.#notifier.events;
  }

  get state(): LauncherState {
    const { domain, metadata } = this.#vm;
    const { role, isFinalized, allowsDisruption } = this.#migration;
    const { Migration } = metadata;
    return {
      process: this.#process,
      crashReason: this.#crashReason,
      domain: domain === undefined ? undefined : { status: domain.status, reason: domain.reason },
      isAgentConnected: this.#vm.isAgentConnected,
      isFrozen: this.#vm.isFrozen,
      disks: aliases(domain?.spec.Devices.Disks),
      interfaces: aliases(domain?.spec.Devices.Interfaces),
      hostDevices: aliases(domain?.spec.Devices.HostDevices),
      vcpus: this.#vm.vcpus,
      memoryKiB: this.#vm.memoryKiB,
      expandsDisks: this.#vm.expandsDisks,
      migration:
        role === undefined
          ? undefined
          : {
              role,
              uid: Migration?.UID ?? '',
              hasEnded: Migration?.EndTimestamp !== undefined,
              hasFailed: Migration?.Failed === true,
              isFinalized,
              allowsDisruption,
            },
    };
  }

  domainJson(): string {
    return this.#vm.domain === undefined ? '' : this.#render(false);
  }

  #render(isEvent: boolean): string {
    const text = shapeDomainJson(this.#vm.document(isEvent), this.line);
    return this.#options.tamper?.domain?.(text) ?? text;
  }

  waitFor(what: string, condition: (launcher: EmulatedLauncher) => boolean, timeoutMs?: number): Promise<void> {
    return this.#waiter.waitFor(`${this.line} launcher: ${what}`, () => condition(this), timeoutMs);
  }

  #describe(): string {
    const { domain, process } = this.state;
    const last = this.calls.slice(-8).map(({ rpc }) => rpc);
    return `process ${process}, domain ${domain?.status ?? 'none'}, last calls ${last.join(' ')}`;
  }

  // Provocations.

  connectAgent(): void {
    this.#vm.setAgent(true);
  }

  disconnectAgent(): void {
    this.#vm.setAgent(false);
  }

  powerOffGuest(): void {
    this.#vm.powerOff();
  }

  crashGuest(): void {
    this.#vm.change('Shutoff', 'Crashed');
  }

  panicGuest(): void {
    this.#vm.panic();
  }

  failDisk(): void {
    this.#vm.failDisk();
  }

  reconnectLibvirt(): void {
    if (this.#facts.launcher.reconnectEvent.value === 'MODIFIED') return this.#sendDomain('MODIFIED');
    const { namespace, name } = this.#options.vmi;
    const message = `Libvirt reconnect, domain ${namespace}_${name}`;
    const statusJSON = JSON.stringify({ metadata: {}, status: 'Failure', message });
    this.#notifier.send({
      kind: 'domain',
      type: 'ERROR',
      fields: { statusJSON, eventType: 'ERROR' },
      status: '',
    });
  }

  cutNotify(isCut: boolean): void {
    this.#notifier.cut(isCut);
  }

  receiveMigration(): void {
    this.#migration.receive();
  }

  hang(): void {
    this.#hung ??= Promise.withResolvers();
  }

  unhang(): void {
    this.#hung?.resolve(undefined);
    this.#hung = undefined;
  }

  crashProcess(reason: string): void {
    void this.#end('crashed', reason);
  }

  terminate(): void {
    this.#isTerminating = true;
    this.#vm.markForShutdown();
    if (this.#vm.domain === undefined) void this.#end('stopped', undefined);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#end('stopped', undefined);
  }

  async #end(process: 'stopped' | 'crashed', reason: string | undefined): Promise<void> {
    if (this.#process !== 'running') return;
    this.#process = process;
    this.#crashReason = reason;
    for (const timer of this.#timers) clearTimeout(timer);
    this.#ended.abort();
    this.unhang();
    this.#notifier[Symbol.dispose]();
    const killed = this.#server?.kill();
    this.#waiter.changed();
    await killed;
  }

  #after(delayMs: number, run: () => void): void {
    if (this.#process !== 'running') return;
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      run();
      this.#waiter.changed();
    }, delayMs);
    this.#timers.add(timer);
  }

  // Events.

  #sendDomain(type: 'ADDED' | 'MODIFIED'): void {
    const { domain, isGone } = this.#vm;
    this.#notifier.send({
      kind: 'domain',
      type,
      isFinal: isGone,
      fields: { domainJSON: this.#render(true), eventType: type },
      status: domain === undefined ? 'NoState/NonExistent' : `${domain.status}/${domain.reason}`,
    });
    if (isGone) this.#after(LAST_EVENT_LIMIT_MS, () => void this.#end('stopped', undefined));
    this.#waiter.changed();
  }

  #sendK8sEvent(reason: string, message: string): void {
    if (!this.#facts.launcher.k8sEvents.value.includes(reason)) return;
    const { namespace, name, uid } = this.#options.vmi;
    const involvedObject = { kind: 'VirtualMachineInstance', namespace, name, uid, apiVersion: 'kubevirt.io/v1' };
    const creation = this.#facts.shared.printsNullCreationTimestamp.value ? { creationTimestamp: null } : {};
    const eventJSON = JSON.stringify({
      metadata: creation,
      involvedObject,
      reason,
      message,
      source: {},
      firstTimestamp: null,
      lastTimestamp: null,
      type: 'Warning',
      eventTime: null,
      reportingComponent: '',
      reportingInstance: '',
    });
    this.#notifier.send({ kind: 'k8s', type: reason, fields: { eventJSON }, status: '' });
  }

  /** A launcher ends after its last event, sent or lost. */
  #onOutcome(event: SentEvent, isFinal: boolean): void {
    this.#waiter.changed();
    if (!isFinal || event.outcome === 'pending') return;
    const { exitMs } = this.#vm.deps.lifeCycle;
    this.#after(this.#isTerminating ? 1 : exitMs, () => void this.#end('stopped', undefined));
  }

  // Calls.

  async #answer(call: IncomingCall): Promise<OutgoingAnswer> {
    const rpc = this.#schema.rpcs.get(call.path);
    const [, service = '', method = ''] = call.path.split('/');
    const isLacking = this.#options.faults?.lack?.includes(method) === true;
    if (rpc === undefined || isLacking || service.startsWith('kubevirt.notify.')) {
      return this.#unknown(call, service, method);
    }
    const decoded = decodeRequest(rpc, call.request);
    if (decoded === undefined) {
      const text = 'grpc: error unmarshalling request: proto: cannot parse invalid wire-format data';
      return this.#finish(call, rpc, undefined, { kind: 'status', code: GRPC.internal, details: text });
    }
    await this.#hung?.promise;
    if (this.#options.faults?.hang?.includes(rpc.name) === true) {
      return this.#finish(call, rpc, decoded, { kind: 'silence' });
    }
    return this.#finish(call, rpc, decoded, await this.#run(rpc, decoded.fields));
  }

  #unknown(call: IncomingCall, service: string, method: string): OutgoingAnswer {
    const isKnown = service === 'kubevirt.cmd.v1.Cmd' || service === 'kubevirt.cmd.info.CmdInfo';
    const details = isKnown ? `unknown method ${method} for service ${service}` : `unknown service ${service}`;
    const answer: OutgoingAnswer = { kind: 'status', code: GRPC.unimplemented, details };
    const rpc = this.#schema.rpcs.get(call.path);
    const decoded = rpc === undefined ? undefined : decodeRequest(rpc, call.request);
    return this.#finish(call, { name: method }, decoded, answer);
  }

  async #run(rpc: ReleaseRpc, request: Fields): Promise<OutgoingAnswer> {
    if (rpc === this.#schema.cmdInfo) {
      const supportedCmdVersions = this.#facts.shared.protocolVersions.value;
      return this.#message(rpc, { supportedCmdVersions });
    }
    try {
      const refusal = this.#options.faults?.fail?.[rpc.name];
      if (refusal !== undefined) throw new Refusal(refusal);
      const run = (): Promise<Fields> => answerCmd(this.#context, rpc, request);
      const fields = await (LOCKED_RPCS.includes(rpc.name) ? this.#locked(run) : run());
      const outcome = { success: true };
      return this.#message(rpc, rpc.isPlainResponse ? { ...outcome, ...fields } : { response: outcome, ...fields });
    } catch (caught) {
      return this.#failure(rpc, caught);
    }
  }

  #failure(rpc: ReleaseRpc, caught: unknown): OutgoingAnswer {
    if (caught instanceof ProcessCrash) {
      this.crashProcess(caught.message);
      return { kind: 'silence' };
    }
    if (caught instanceof StatusFailure) return { kind: 'status', code: caught.code, details: caught.message };
    const message = caught instanceof Error ? caught.message : String(caught);
    if (STATUS_RPCS.includes(rpc.name)) return { kind: 'status', code: GRPC.unknown, details: message };
    return this.#message(rpc, rpc.isPlainResponse ? { message } : { response: { message } });
  }

  #message(rpc: ReleaseRpc, fields: Fields): OutgoingAnswer {
    const bytes = rpc.encodeResponse(fields);
    return { kind: 'message', bytes: this.#options.tamper?.response?.(rpc.name, bytes) ?? bytes };
  }

  #locked<T>(run: () => Promise<T>): Promise<T> {
    const result = this.#lock.then(run, run);
    this.#lock = result.catch(() => undefined);
    return result;
  }

  #finish(
    call: IncomingCall,
    rpc: { readonly name: string; readonly decodeResponse?: ReleaseRpc['decodeResponse'] },
    decoded: { readonly fields: Fields; readonly dropped: readonly string[] } | undefined,
    answer: OutgoingAnswer,
  ): OutgoingAnswer {
    const response = answer.kind === 'message' ? decodeOwn(rpc, answer.bytes) : undefined;
    this.#recorder.record({
      channel: 'cmd',
      rpc: rpc.name,
      authority: call.authority,
      request: decoded?.fields ?? {},
      requestBytes: call.request,
      droppedFields: decoded?.dropped ?? [],
      timeoutMs: call.timeoutMs,
      code: answer.kind === 'status' ? answer.code : answer.kind === 'message' ? GRPC.ok : GRPC.unavailable,
      details: answer.kind === 'status' ? answer.details : '',
      response,
    });
    return answer;
  }
}

function decodeRequest(
  rpc: ReleaseRpc,
  bytes: Uint8Array,
): { readonly fields: Fields; readonly dropped: readonly string[] } | undefined {
  try {
    return rpc.decodeRequest(bytes);
  } catch {
    return undefined;
  }
}

/** A tampered answer may be no message any more. */
function decodeOwn(
  rpc: { readonly decodeResponse?: ReleaseRpc['decodeResponse'] },
  bytes: Uint8Array,
): Fields | undefined {
  try {
    return rpc.decodeResponse?.(bytes).fields;
  } catch {
    return undefined;
  }
}
