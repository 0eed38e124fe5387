import { join } from 'node:path';
import { connectCmd, vmiRequest } from '@virtwire/shared-proto';
import type { CmdClient } from '@virtwire/shared-proto';
import { isConditionTrue, renderVmiJson } from '@virtwire/vm-model';
import type { Vmi } from '@virtwire/vm-model';
import type { Pair, ScenarioContext } from '../cell.ts';
import type { EmulatedHandler, EmulatedLauncher, EmulatedLauncherOptions } from '../emulate/api.ts';
import type { Emulations } from '../matrix/emulations.ts';
import { eventually } from '../matrix/eventually.ts';
import { createNodeDirs, NODE_NAME } from '../matrix/node-dirs.ts';
import type { NodeDirs } from '../matrix/node-dirs.ts';
import type { RunningHandler, StartHandler } from '../matrix/subjects.ts';
import { POD_UID, scheduledVmi, VM, VM_KEY } from '../matrix/test-vmi.ts';
import { VmiStore } from '../matrix/vmi-store.ts';
import type { ReleaseLine } from '../release-line.ts';
import { check } from './verdicts.ts';

/** What the scenes of both sides are made of. */
export interface SceneDeps {
  readonly pair: Pair;
  readonly line: ReleaseLine;
  readonly emulations: Emulations;
  readonly signal: AbortSignal;
  readonly note: (line: string) => void;
}

const RESYNC_MS = 300_000;

/** A node with the handler under test and emulated launchers; the scenario plays the cluster. */
export class HandlerScene implements ScenarioContext, AsyncDisposable {
  readonly pair: Pair;
  readonly line: ReleaseLine;
  readonly signal: AbortSignal;
  readonly dirs: NodeDirs = createNodeDirs();
  readonly store = new VmiStore();
  readonly #deps: SceneDeps;
  readonly #startHandler: StartHandler;
  readonly #stack = new AsyncDisposableStack();
  #handler: RunningHandler | undefined;

  constructor(deps: SceneDeps, startHandler: StartHandler) {
    this.#deps = deps;
    this.#startHandler = startHandler;
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

  /** The handler under test that runs now. */
  get handler(): RunningHandler {
    if (this.#handler === undefined) throw new Error('no handler runs');
    return this.#handler;
  }

  /** Whether the handler under test says that it does not have a part. */
  lacks(part: string): boolean {
    return this.handler.missingParts?.includes(part) === true;
  }

  async startHandler(resyncMs = RESYNC_MS): Promise<RunningHandler> {
    const { dirs, store } = this;
    const log = (line: string): void => this.note(`handler: ${line.trimEnd()}`);
    this.#handler = await this.#startHandler({ nodeName: NODE_NAME, dirs, store, resyncMs, log });
    return this.#handler;
  }

  async stopHandler(): Promise<void> {
    const handler = this.#handler;
    this.#handler = undefined;
    await handler?.stop();
  }

  /** Starts the launcher of the cell's line, in a pod of its own. */
  async startLauncher(options: Partial<EmulatedLauncherOptions> = {}, podUid = POD_UID): Promise<EmulatedLauncher> {
    const { socketsDir, shareDir } = this.dirs.pod(podUid);
    const launcher = await this.#deps.emulations.startLauncher({
      line: this.line,
      vmi: VM,
      socketsDir,
      shareDir,
      podName: 'virt-launcher-vm1',
      ...options,
    });
    return this.#stack.use(launcher);
  }

  /** Starts a handler of an old line in the place of the one under test. */
  async startOldHandler(line: ReleaseLine): Promise<EmulatedHandler> {
    const { podsDir, shareDir } = this.dirs;
    return this.#deps.emulations.startHandler({
      line,
      nodeName: NODE_NAME,
      podsDir,
      shareDir,
      podShareDir: (podUid) => this.dirs.pod(podUid).shareDir,
    });
  }

  /** The cluster hands the VMI over to the node. */
  handOver(edit?: (vmi: Vmi) => void): void {
    this.store.put(scheduledVmi(edit));
  }

  /** The stored VMI. */
  get vmi(): Vmi {
    const vmi = this.store.get(VM_KEY);
    if (vmi === undefined) throw new Error('the VMI is gone');
    return vmi;
  }

  change(edit: (vmi: Vmi) => void): void {
    this.store.change(VM_KEY, edit);
  }

  /** Waits for a condition that concerns the stored VMI or the peers. */
  async until(what: string, condition: () => boolean, limitMs?: number): Promise<void> {
    const state = (): string => `the VMI is ${JSON.stringify(this.store.get(VM_KEY)?.status ?? 'gone')}`;
    await eventually(what, condition, { state, signal: this.signal, ...(limitMs === undefined ? {} : { limitMs }) });
  }

  /** Looks for a while that something stays so. @throws {CompatError} `Deviation` as soon as it does not. */
  async stays(what: string, isSo: () => boolean, forMs: number): Promise<void> {
    const endAtMs = Date.now() + forMs;
    await this.until(`${what} for ${forMs} ms`, () => {
      check(isSo(), `${what} was not so for ${forMs} ms`);
      return Date.now() > endAtMs;
    });
  }

  async untilPhase(phase: string, limitMs?: number): Promise<void> {
    await this.until(`phase ${phase}`, () => this.store.get(VM_KEY)?.status?.phase === phase, limitMs);
  }

  hasCondition(type: string): boolean {
    return isConditionTrue(this.store.get(VM_KEY)?.status?.conditions, type);
  }

  /** The usual begin: launcher, handler, hand-over, Running. */
  async runVm(options: Partial<EmulatedLauncherOptions> = {}, edit?: (vmi: Vmi) => void): Promise<EmulatedLauncher> {
    const launcher = await this.startLauncher(options);
    await this.startHandler();
    this.handOver(edit);
    await this.untilPhase('Running');
    return launcher;
  }

  /** A client of our own library, as REST calls and metrics use it. */
  async connect(podUid = POD_UID): Promise<CmdClient> {
    return this.#stack.use(await connectCmd(join(this.dirs.pod(podUid).socketsDir, 'launcher-sock')));
  }

  /** The request about the VMI as it is stored now. */
  request(): ReturnType<typeof vmiRequest> {
    return vmiRequest(renderVmiJson(this.vmi));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stopHandler().catch((error: unknown) => this.note(`stopping the handler failed: ${String(error)}`));
    await this.#stack.disposeAsync();
  }
}
