import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { startFakeDaemon } from '@virtwire/libvirt/fake';
import type { FakeDaemon, FakeDomain, GuestBehaviour } from '@virtwire/libvirt/fake';
import { domainName } from '@virtwire/vm-model';
import type { Vmi } from '@virtwire/vm-model';
import type { Pair, ScenarioContext } from '../cell.ts';
import type { ActionOutcome, EmulatedHandler, HandlerAction } from '../emulate/api.ts';
import type { Patch } from '../emulate/lines/lines.ts';
import { CompatError } from '../errors.ts';
import { eventually } from '../matrix/eventually.ts';
import { createNodeDirs, NODE_NAME } from '../matrix/node-dirs.ts';
import type { NodeDirs } from '../matrix/node-dirs.ts';
import { keepStandIn } from '../matrix/qemu-stand-in.ts';
import type { RunningLauncher, StartLauncher } from '../matrix/subjects.ts';
import { POD_UID, scheduledVmi, VM } from '../matrix/test-vmi.ts';
import type { ReleaseLine } from '../release-line.ts';
import type { SceneDeps } from './handler-scene.ts';
import { failBy } from './verdicts.ts';

const DOMAIN = domainName(VM.namespace, VM.name);

/** Words of every failed call of an action. */
export function failuresOf(outcome: ActionOutcome): string {
  const calls = outcome.calls
    .filter((call) => !call.ok)
    .map((call) => `${call.rpc}: ${call.error ?? `code ${call.code}`}`);
  return [...calls, ...(outcome.error === undefined ? [] : [outcome.error])].join('; ');
}

/** A node with the launcher under test on a libvirt daemon in memory, and emulated handlers. */
export class LauncherScene implements ScenarioContext, AsyncDisposable {
  readonly pair: Pair;
  readonly line: ReleaseLine;
  readonly signal: AbortSignal;
  readonly dirs: NodeDirs = createNodeDirs();
  /** The VMI as the cluster has it; scenarios change it. */
  readonly vmi: Vmi = scheduledVmi();
  readonly #deps: SceneDeps;
  readonly #startLauncher: StartLauncher;
  readonly #stack = new AsyncDisposableStack();
  readonly #handlers = new Set<EmulatedHandler>();
  #daemon: FakeDaemon | undefined;

  constructor(deps: SceneDeps, startLauncher: StartLauncher) {
    this.#deps = deps;
    this.#startLauncher = startLauncher;
    this.pair = deps.pair;
    this.line = deps.line;
    this.signal = deps.signal;
    this.#stack.use(this.dirs);
  }

  get workDir(): string {
    return this.dirs.root;
  }

  note(line: string): void {
    this.#deps.note(line);
  }

  /** The launcher's libvirt daemon. */
  get daemon(): FakeDaemon {
    if (this.#daemon === undefined) throw new CompatError('ServeFailed', 'no launcher was started');
    return this.#daemon;
  }

  /** The launcher's domain in libvirt, for its levers. */
  get domain(): FakeDomain {
    return this.daemon.domain(DOMAIN);
  }

  get isDomainActive(): boolean {
    return this.daemon.hypervisor.domains.some((domain) => domain.name === DOMAIN && domain.isActive);
  }

  /** How often the domain was started. */
  get starts(): number {
    return this.daemon.callsOf('DOMAIN_CREATE_WITH_FLAGS').length;
  }

  get cmdSocket(): string {
    return join(this.dirs.pod(POD_UID).socketsDir, 'launcher-sock');
  }

  async startLauncher(guest: GuestBehaviour = {}, flags: readonly string[] = []): Promise<RunningLauncher> {
    const scratchDir = join(this.dirs.root, 'l');
    mkdirSync(scratchDir, { recursive: true });
    const libvirtSocket = join(this.dirs.root, 'libvirt');
    this.#daemon = await startFakeDaemon({ uri: 'qemu:///session', guest, socketPath: libvirtSocket });
    this.#stack.use(this.#daemon);
    const launcher = await this.#startLauncher({
      ...{ vm: VM, pod: this.dirs.pod(POD_UID), scratchDir, libvirtSocket, flags },
      log: (line) => this.note(`launcher: ${line.trimEnd()}`),
    });
    this.#stack.defer(() => launcher.kill());
    this.#stack.use(keepStandIn(launcher.qemuPidFile, () => this.isDomainActive));
    return launcher;
  }

  async startHandler(line: ReleaseLine = this.line, patch: Patch = 'last'): Promise<EmulatedHandler> {
    const { podsDir, shareDir } = this.dirs;
    const handler = await this.#deps.emulations.startHandler({
      ...{ line, patch, nodeName: NODE_NAME, podsDir, shareDir },
      podShareDir: (podUid) => this.dirs.pod(podUid).shareDir,
    });
    this.#handlers.add(handler);
    return handler;
  }

  /** Ends a handler as SIGTERM does. */
  async stopHandler(handler: EmulatedHandler): Promise<void> {
    this.#handlers.delete(handler);
    await handler[Symbol.asyncDispose]();
  }

  /** Runs an action of a handler for the cell's VM; the outcome is the caller's to judge. */
  async act(handler: EmulatedHandler, action: HandlerAction): Promise<ActionOutcome> {
    const vmi = structuredClone(this.vmi) as unknown as Readonly<Record<string, unknown>>;
    const outcome = await handler.run(action, vmi, POD_UID);
    for (const call of outcome.calls) this.note(`${action}: ${call.rpc} ${call.ok ? 'ok' : (call.error ?? 'failed')}`);
    return outcome;
  }

  /** Runs an action that has to succeed. @throws {CompatError} `CallFailed` with the handler's words, or {PartMissing}. */
  async must(handler: EmulatedHandler, action: HandlerAction): Promise<ActionOutcome> {
    const outcome = await this.act(handler, action);
    if (!outcome.ok) failBy(failuresOf(outcome), action);
    return outcome;
  }

  async until(what: string, condition: () => boolean, limitMs?: number): Promise<void> {
    await eventually(what, condition, { signal: this.signal, ...(limitMs === undefined ? {} : { limitMs }) });
  }

  /** Waits until a handler knows the domain in a state. */
  async untilDomain(handler: EmulatedHandler, status: string, reason?: string): Promise<void> {
    const known = (): Readonly<Record<string, unknown>> | undefined => handler.domain(VM);
    const isSo = (): boolean => {
      const shown = statusOf(known());
      return shown.status === status && (reason === undefined || shown.reason === reason);
    };
    const refused = (): string => {
      const bad = handler.events.filter((event) => !event.accepted).map((event) => event.error ?? '');
      const shown = statusOf(known());
      return `it is ${shown.status}/${shown.reason}, refused events: ${JSON.stringify(bad)}, handler ${handler.state.process} ${handler.state.crashReason ?? ''}`;
    };
    await eventually(`domain ${status}/${reason ?? '*'} at the handler`, isSo, { signal: this.signal, state: refused });
  }

  /** The usual begin: launcher, handler, start, Running. */
  async runVm(guest?: GuestBehaviour, patch?: Patch): Promise<{ launcher: RunningLauncher; handler: EmulatedHandler }> {
    const launcher = await this.startLauncher(guest);
    return { launcher, handler: await this.startVm(patch) };
  }

  /** Handler, start, Running, for a launcher that is there. */
  async startVm(patch: Patch = 'last'): Promise<EmulatedHandler> {
    const handler = await this.startHandler(this.line, patch);
    await this.must(handler, 'start');
    await this.untilDomain(handler, 'Running');
    this.vmi.status = { ...this.vmi.status, phase: 'Running' };
    return handler;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const handler of this.#handlers) await handler[Symbol.asyncDispose]();
    await this.#stack.disposeAsync();
  }
}

/** Status and reason of a decoded domain. */
function statusOf(domain: Readonly<Record<string, unknown>> | undefined): { status: string; reason: string } {
  const status = domain?.['Status'] as { readonly Status?: string; readonly Reason?: string } | undefined;
  return { status: status?.Status ?? '', reason: status?.Reason ?? '' };
}
