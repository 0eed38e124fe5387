import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';

import type { RecordedCall, SentEvent } from '../api.ts';
import type { LineFacts } from '../facts/line-facts.ts';
import type { Fields, ReleaseRpc, ReleaseSchema } from '../schema/release-schema.ts';
import { dialGrpc, type GrpcConnection } from '../transport/grpc-client.ts';
import { GRPC } from '../transport/grpc-frames.ts';

/**
 * An event before it is sent. It shows the state in which it happened, not that of the moment of sending: a quick
 * emulated VM would else be over before its first event has left.
 */
export interface OutgoingEvent {
  readonly kind: 'domain' | 'k8s';
  readonly type: string;
  /** The last event of a launcher: its end waits for it. */
  readonly isFinal?: boolean;
  readonly fields: Fields;
  /** `Running/Unknown` for domain events. */
  readonly status: string;
}

/** What the notifier tells its launcher. */
export interface NotifierDeps {
  readonly facts: LineFacts;
  readonly schema: ReleaseSchema;
  readonly shareDir: string;
  readonly signal: AbortSignal;
  readonly record: (call: Omit<RecordedCall, 'seq' | 'atMs'>) => void;
  readonly onOutcome: (event: SentEvent, isFinal: boolean) => void;
}

/** A launcher's side of the notify protocol: one event after the other, each tried for a while and then lost. */
export interface Notifier extends Disposable {
  readonly events: readonly SentEvent[];
  send(event: OutgoingEvent): void;
  /** Breaks the way to the handler, or mends it; events are tried on meanwhile as the release does. */
  cut(isCut: boolean): void;
}

/** More than this many waiting events means that the peer has been away for long; the oldest are lost. */
const MAX_WAITING = 500;
const INFO_TIMEOUT_MS = 5_000;

/** Creates a notifier. @source wire.md 7 Launcher side; releases.json eras.notifyClient */
export function createNotifier(deps: NotifierDeps): Notifier {
  const events: SentEvent[] = [];
  const waiting: { readonly event: OutgoingEvent; readonly index: number }[] = [];
  const connection = new NotifyConnection(deps);
  let isSending = false;

  const settle = (index: number, change: Partial<SentEvent>, isFinal: boolean): void => {
    const before = events[index];
    if (before === undefined) return;
    const after = { ...before, ...change };
    events[index] = after;
    deps.onOutcome(after, isFinal);
  };

  const drain = async (): Promise<void> => {
    if (isSending) return;
    isSending = true;
    for (let next = waiting.shift(); next !== undefined && !deps.signal.aborted; next = waiting.shift()) {
      const { event, index } = next;
      const rpc = deps.schema.notifyRpcs.get(event.kind === 'domain' ? 'HandleDomainEvent' : 'HandleK8sEvent');
      if (rpc === undefined) continue;
      settle(
        index,
        await connection.deliver(rpc, event.fields, (attempts) => settle(index, { attempts }, false)),
        event.isFinal === true,
      );
    }
    isSending = false;
  };

  return {
    events,
    send: (event) => {
      const { kind, type, status } = event;
      const seq = events.length + 1;
      events.push({ seq, kind, type, status, attempts: 0, outcome: 'pending', error: undefined });
      waiting.push({ event, index: seq - 1 });
      const oldest = waiting.length > MAX_WAITING ? waiting.shift() : undefined;
      if (oldest !== undefined) settle(oldest.index, { outcome: 'lost', error: 'too many events wait' }, false);
      void drain();
    },
    cut: (isCut) => connection.cut(isCut),
    [Symbol.dispose]: () => connection[Symbol.dispose](),
  };
}

type Delivery = Pick<SentEvent, 'attempts' | 'outcome' | 'error'>;

/** The one connection, made on demand and made anew after an error. */
class NotifyConnection implements Disposable {
  readonly #deps: NotifierDeps;
  #connection: GrpcConnection | undefined;
  #isCut = false;

  constructor(deps: NotifierDeps) {
    this.#deps = deps;
  }

  async deliver(rpc: ReleaseRpc, fields: Fields, onAttempt: (attempts: number) => void): Promise<Delivery> {
    const { everyMs, totalMs, callMs } = this.#deps.facts.launcher.notifyRetry.value;
    const deadlineAtMs = performance.now() + totalMs;
    let error: string | undefined;
    for (let attempts = 1; ; attempts++) {
      onAttempt(attempts);
      const result = await this.#try(rpc, fields, callMs);
      if (result.kind === 'answered') {
        const outcome = result.isSuccess ? 'sent' : 'refused';
        return { attempts, outcome, error: result.isSuccess ? undefined : result.message };
      }
      error = result.message;
      if (performance.now() + everyMs > deadlineAtMs || this.#deps.signal.aborted) {
        return { attempts, outcome: 'lost', error };
      }
      await pause(everyMs, this.#deps.signal);
    }
  }

  async #try(
    rpc: ReleaseRpc,
    fields: Fields,
    callMs: number,
  ): Promise<
    | { readonly kind: 'answered'; readonly isSuccess: boolean; readonly message: string }
    | { readonly kind: 'failed'; readonly message: string }
  > {
    try {
      this.#connection ??= await this.#connect();
      const { code, details, response } = await this.#call(this.#connection, rpc, fields, callMs);
      if (code === GRPC.ok) {
        const message = typeof response['message'] === 'string' ? response['message'] : '';
        return { kind: 'answered', isSuccess: response['success'] === true, message };
      }
      this.#drop();
      return { kind: 'failed', message: details };
    } catch (caught) {
      this.#drop();
      return { kind: 'failed', message: caught instanceof Error ? caught.message : String(caught) };
    }
  }

  cut(isCut: boolean): void {
    this.#isCut = isCut;
    if (isCut) this.#drop();
  }

  async #connect(): Promise<GrpcConnection> {
    const connection = await this.#open();
    if (!this.#isCut) return connection;
    connection[Symbol.dispose]();
    throw new Error('the way to the handler is cut');
  }

  async #open(): Promise<GrpcConnection> {
    const { facts, schema, shareDir } = this.#deps;
    const names = facts.launcher.notifySockets.value;
    const paths = names.map((name) => join(shareDir, name));
    const path = paths.find((candidate) => existsSync(candidate)) ?? paths.at(-1) ?? '';
    const { authority, userAgent } = facts.shared;
    const connection = await dialGrpc(path, {
      authority: authority.value === 'socketPath' ? `/var/run/kubevirt/${names.at(-1) ?? ''}` : authority.value,
      userAgent: userAgent.value,
    });
    const { code, details, response } = await this.#call(connection, schema.notifyInfo, {}, INFO_TIMEOUT_MS);
    const offered = (response['supportedNotifyVersions'] ?? []) as readonly number[];
    const problem = code === GRPC.ok ? versionProblem(offered) : `could not check cmd server version: ${details}`;
    if (problem === undefined) return connection;
    connection[Symbol.dispose]();
    throw new Error(problem);
  }

  async #call(
    connection: GrpcConnection,
    rpc: ReleaseRpc,
    fields: Fields,
    timeoutMs: number,
  ): Promise<{ readonly code: number; readonly details: string; readonly response: Fields }> {
    const requestBytes = rpc.encodeRequest(fields);
    const { code, details, bytes } = await connection.call(rpc.path, requestBytes, timeoutMs);
    const response = code === GRPC.ok ? rpc.decodeResponse(bytes).fields : {};
    this.#deps.record({
      channel: 'notify',
      rpc: rpc.name,
      authority: connection.authority,
      request: fields,
      requestBytes,
      droppedFields: [],
      timeoutMs,
      code,
      details,
      response: code === GRPC.ok ? response : undefined,
    });
    return { code, details, response };
  }

  #drop(): void {
    this.#connection?.[Symbol.dispose]();
    this.#connection = undefined;
  }

  [Symbol.dispose](): void {
    this.#drop();
  }
}

/** @source releases.json eras.negotiation, notifyVersionsAcceptedByLauncher; wire.md 3 */
function versionProblem(offered: readonly number[]): string | undefined {
  if (offered.includes(1)) return undefined;
  return `no compatible version found, server: [${offered.join(' ')}], client: [1]`;
}

function pause(delayMs: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, delayMs);
    signal.addEventListener('abort', done, { once: true });
  });
}
