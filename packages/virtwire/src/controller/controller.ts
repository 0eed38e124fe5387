import { EventEmitter } from 'node:events';
import { existsSync, watch } from 'node:fs';
import type { FSWatcher } from 'node:fs';
import { join } from 'node:path';
import { PidHandle } from '@virtwire/host';
import type { Logger } from '@virtwire/telemetry';
import { objectFields } from '@virtwire/telemetry';
import { isConditionTrue, parseTime } from '@virtwire/vm-model';
import type { Vmi } from '@virtwire/vm-model';
import { errorText, hasCode } from '../errors.ts';
import { timerDelay } from '../machine/timer-delay.ts';
import { emptyDirsOf } from '../sandbox/pod-files.ts';
import type { NodeLayout } from '../state/layout.ts';
import type { SandboxRecord, SandboxRecords } from '../state/sandbox-records.ts';
import { decideVm } from './decide.ts';
import type { Observed, Step } from './decide.ts';
import { graceSeconds } from './launcher-command.ts';
import type { VmiKey, VmiStore } from './store.ts';
import { keyOf } from './store.ts';
import { failed, handOver, scheduling, withReady } from './vmi-changes.ts';

/** Makes and removes sandboxes; everything that touches the machine. */
export interface SandboxPort {
  create(vmi: Vmi, podUid: string): Promise<SandboxRecord>;
  /** Resolves when the launcher can start a VM without further ado. */
  probe(podUid: string, signal: AbortSignal): Promise<void>;
  remove(podUid: string): Promise<void>;
}

/** What the controller works with. */
export interface ControllerDeps {
  readonly store: VmiStore;
  readonly sandboxes: SandboxPort;
  readonly records: SandboxRecords;
  readonly layout: NodeLayout;
  readonly newUid: () => string;
  readonly now: () => number;
  readonly log: Logger;
}

/** What people see of the controller's work. */
export interface ControllerEvent {
  readonly key: VmiKey;
  readonly what: string;
  readonly failed?: boolean;
}

/** Plays virt-controller and kubelet for the VMs of one node. */
export interface Controller extends AsyncDisposable {
  /** Emits every step that was taken. */
  readonly events: EventEmitter<{ step: [ControllerEvent] }>;
}

const RETRY_MS = 1_000;
const MAX_CREATE_TRIES = 3;
/** A launcher that does not answer its probe is handed over all the same after this time: the handler copes. */
const PROBE_PATIENCE_MS = 15_000;

interface VmState {
  busy: boolean;
  again: boolean;
  timer: NodeJS.Timeout | undefined;
  handle: PidHandle | undefined;
  sockets: FSWatcher | undefined;
  /** Of the launcher: when its socket was seen first, and what became of asking it. */
  probe: { readonly podUid: string; readonly since: number; state: 'asking' | 'answered' | 'failed' } | undefined;
  endedAt: number | undefined;
  finalAt: number | undefined;
  terminatedUid: string | undefined;
  killedUid: string | undefined;
  createTries: number;
}

function release(state: VmState): void {
  clearTimeout(state.timer);
  state.handle?.[Symbol.dispose]();
  state.sockets?.close();
}

const isFinal = (vmi: Vmi): boolean => vmi.status?.phase === 'Succeeded' || vmi.status?.phase === 'Failed';

/** One controller; it lives until it is disposed of, and leaves the VMs as they are. */
class StandaloneController implements Controller {
  readonly events = new EventEmitter<{ step: [ControllerEvent] }>();
  readonly #deps: ControllerDeps;
  readonly #node: string;
  readonly #vms = new Map<VmiKey, VmState>();
  readonly #stopped = new AbortController();
  readonly #work = new Set<Promise<void>>();
  #watch: Disposable | undefined;

  constructor(deps: ControllerDeps, node: string) {
    this.#deps = deps;
    this.#node = node;
  }

  start(): void {
    this.#watch = this.#deps.store.watch((key) => this.#trigger(key));
    for (const vmi of this.#deps.store.list()) this.#trigger(keyOf(vmi));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopped.abort();
    this.#watch?.[Symbol.dispose]();
    for (const state of this.#vms.values()) clearTimeout(state.timer);
    await Promise.allSettled(this.#work);
    for (const state of this.#vms.values()) release(state);
    this.#vms.clear();
  }

  #stateOf(key: VmiKey): VmState {
    const state = this.#vms.get(key) ?? {
      busy: false,
      again: false,
      timer: undefined,
      handle: undefined,
      sockets: undefined,
      probe: undefined,
      endedAt: undefined,
      finalAt: undefined,
      terminatedUid: undefined,
      killedUid: undefined,
      createTries: 0,
    };
    this.#vms.set(key, state);
    return state;
  }

  #trigger(key: VmiKey): void {
    if (this.#stopped.signal.aborted) return;
    const state = this.#stateOf(key);
    state.again = true;
    if (state.busy) return;
    state.busy = true;
    const work = this.#drain(key, state).finally(() => {
      state.busy = false;
      this.#work.delete(work);
    });
    this.#work.add(work);
  }

  async #drain(key: VmiKey, state: VmState): Promise<void> {
    while (state.again && !this.#stopped.signal.aborted) {
      state.again = false;
      clearTimeout(state.timer);
      await this.#reconcile(key, state).catch((caught: unknown) => {
        this.#deps.log.warn({ reason: errorText(caught), key }, 'cannot take the next step, trying again');
        if (!hasCode(caught, 'Conflict')) this.#later(key, state, RETRY_MS);
        else state.again = true;
      });
    }
  }

  #later(key: VmiKey, state: VmState, afterMs: number): void {
    if (!Number.isFinite(afterMs)) return;
    clearTimeout(state.timer);
    state.timer = setTimeout(() => this.#trigger(key), timerDelay(Math.max(10, afterMs)));
  }

  async #reconcile(key: VmiKey, state: VmState): Promise<void> {
    const vmi = this.#deps.store.get(key);
    if (vmi === undefined) {
      release(state);
      this.#vms.delete(key);
      return;
    }
    const record = this.#deps.records.read(vmi.metadata.uid);
    const step = decideVm(this.#observe(vmi, record, state));
    if (step.kind === 'wait') {
      this.#later(key, state, step.requeueAfterMs);
      return;
    }
    await this.#execute(step, vmi, record, state);
    state.again = true;
  }

  #observe(vmi: Vmi, record: SandboxRecord | undefined, state: VmState): Observed {
    const now = this.#deps.now();
    const isRunning = record !== undefined && this.#isRunning(keyOf(vmi), record, state);
    state.endedAt = record === undefined || isRunning ? undefined : (state.endedAt ?? now);
    state.finalAt = isFinal(vmi) ? (state.finalAt ?? now) : undefined;
    const deletedAt = vmi.metadata.deletionTimestamp;
    const isDeleting = typeof deletedAt === 'string';
    return {
      phase: vmi.status?.phase ?? '',
      isDeleting,
      sandbox: record === undefined ? 'none' : isRunning ? 'running' : 'ended',
      isLauncherReady:
        record !== undefined && vmi.status?.phase === 'Scheduling' && this.#isLauncherReady(keyOf(vmi), record, state),
      endedForMs: state.endedAt === undefined ? 0 : now - state.endedAt,
      deletingForMs: isDeleting ? Math.max(0, now - parseTime(deletedAt)) : 0,
      finalForMs: state.finalAt === undefined ? 0 : now - state.finalAt,
      handlerHolds: existsSync(join(this.#deps.layout.handlerPrivateDir, 'ghost-records', vmi.metadata.uid)),
      isTerminated: state.terminatedUid === vmi.metadata.uid,
      isKilled: state.killedUid === vmi.metadata.uid,
      graceMs: graceSeconds(vmi) * 1_000,
      isReady: isConditionTrue(vmi.status?.conditions, 'Ready'),
      shouldBeReady: vmi.status?.phase === 'Running' && !isConditionTrue(vmi.status.conditions, 'Paused'),
    };
  }

  #isLauncherReady(key: VmiKey, record: SandboxRecord, state: VmState): boolean {
    const directory = join(emptyDirsOf(this.#deps.layout.podsDir, record.podUid), 'sockets');
    if (!existsSync(directory)) return false;
    // Watched before it is looked at, so that a socket that appears in between is not missed.
    state.sockets ??= watch(directory, () => this.#trigger(key));
    if (!existsSync(join(directory, 'launcher-sock'))) return false;
    state.sockets.close();
    state.sockets = undefined;
    return this.#isAnswering(key, record.podUid, state);
  }

  #isAnswering(key: VmiKey, podUid: string, state: VmState): boolean {
    const now = this.#deps.now();
    const before = state.probe?.podUid === podUid ? state.probe : undefined;
    if (before?.state === 'answered' || now - (before?.since ?? now) > PROBE_PATIENCE_MS) return true;
    if (before?.state === 'asking') return false;
    const probe: NonNullable<VmState['probe']> = { podUid, since: before?.since ?? now, state: 'asking' };
    state.probe = probe;
    const settle = (result: 'answered' | 'failed') => (): void => {
      probe.state = result;
      this.#trigger(key);
    };
    this.#deps.sandboxes.probe(podUid, this.#stopped.signal).then(settle('answered'), settle('failed'));
    return false;
  }

  #isRunning(key: VmiKey, record: SandboxRecord, state: VmState): boolean {
    if (state.handle?.pid !== record.pid) {
      state.handle?.[Symbol.dispose]();
      state.handle = undefined;
      try {
        const handle = PidHandle.open(record.pid);
        if (String(handle.startTicks) !== record.startTicks) {
          handle[Symbol.dispose]();
          return false; // the number belongs to another process by now
        }
        state.handle = handle;
        const ended = (): void => this.#trigger(key);
        handle.exited(this.#stopped.signal).then(ended, () => undefined);
      } catch (caught) {
        if (hasCode(caught, 'ProcessGone')) return false;
        throw caught;
      }
    }
    return state.handle.isAlive();
  }

  async #execute(
    step: Exclude<Step, { kind: 'wait' }>,
    vmi: Vmi,
    record: SandboxRecord | undefined,
    state: VmState,
  ): Promise<void> {
    const { store, sandboxes, records } = this.#deps;
    const now = new Date(this.#deps.now());
    switch (step.kind) {
      case 'createSandbox':
        return this.#createSandbox(vmi, state);
      case 'handOver': {
        const podUid = record?.podUid ?? '';
        await store.update(handOver(vmi, { podUid, node: this.#node, image: 'virtwire' }, now));
        return this.#tell(vmi, 'handed over to the handler');
      }
      case 'terminateSandbox':
        state.terminatedUid = vmi.metadata.uid;
        state.handle?.signal('SIGTERM');
        return this.#tell(vmi, 'launcher told to end');
      case 'killSandbox':
        state.killedUid = vmi.metadata.uid;
        state.handle?.signal('SIGKILL');
        return this.#tell(vmi, `launcher killed: ${step.because}`);
      case 'fail':
        await store.update(failed(vmi, step.reason, now));
        return this.#tell(vmi, step.message, true);
      case 'removeSandbox':
        if (record !== undefined) await sandboxes.remove(record.podUid);
        records.remove(vmi.metadata.uid);
        return this.#tell(vmi, 'sandbox removed');
      case 'setReady':
        await store.update(withReady(vmi, step.ready, now));
        return;
      case 'removeVmi':
        await store.remove(keyOf(vmi));
        return this.#tell(vmi, 'removed');
    }
  }

  async #createSandbox(vmi: Vmi, state: VmState): Promise<void> {
    const { store, sandboxes, records, newUid } = this.#deps;
    const podUid = newUid();
    const scheduled = await store.update(scheduling(vmi, podUid, new Date(this.#deps.now())));
    this.#tell(vmi, 'sandbox: building');
    try {
      records.write(await sandboxes.create(scheduled, podUid));
    } catch (caught) {
      state.createTries += 1;
      this.#tell(vmi, `sandbox: ${errorText(caught)}`, true);
      if (state.createTries < MAX_CREATE_TRIES) throw caught;
      await store.update(failed(scheduled, 'SandboxFailed', new Date(this.#deps.now())));
      return;
    }
    state.createTries = 0;
    this.#tell(vmi, 'sandbox: running');
  }

  #tell(vmi: Vmi, what: string, isFailure = false): void {
    const log = this.#deps.log.child(objectFields(vmi));
    if (isFailure) log.warn({}, what);
    else log.info({}, what);
    this.events.emit('step', { key: keyOf(vmi), what, failed: isFailure });
  }
}

/** Starts the controller of a node. */
export function startController(deps: ControllerDeps, node: string): Controller {
  const controller = new StandaloneController(deps, node);
  controller.start();
  return controller;
}
