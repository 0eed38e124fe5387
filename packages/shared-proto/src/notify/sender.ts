import { setTimeout as sleep } from 'node:timers/promises';

import type { CallResult } from '../calls.ts';
import { isRefusal, ProtoError } from '../errors.ts';
import type { DeepPartial, DomainEventRequest, K8sEventRequest, Response } from '../gen/kubevirt/notify/v1/notify.ts';
import type { NotifyClient, NotifySender } from './api.ts';
import { connectNotify } from './client.ts';

/** What a sender needs from the world; tests give it a clock of their own. */
export interface NotifySenderDeps {
  readonly connect?: (socketPath: string, signal: AbortSignal) => Promise<NotifyClient>;
  readonly nowMs?: () => number;
  readonly sleep?: (ms: number, signal: AbortSignal) => Promise<void>;
}

/** Limits of a sender. */
export interface NotifySenderOptions {
  /** Default 1 s, as KubeVirt's. */
  readonly retryIntervalMs?: number | undefined;
  /** How long an event is tried before it is given up. Default 20 s, as KubeVirt's. */
  readonly totalTimeoutMs?: number | undefined;
  /** Events that may wait; the next one fails at once with `TooLarge`. Default 1000. */
  readonly maxWaiting?: number | undefined;
}

const RETRY_INTERVAL_MS = 1_000;
const TOTAL_TIMEOUT_MS = 20_000;
const MAX_WAITING = 1_000;

/**
 * Creates a launcher's way to tell its handler about events. It connects on the first one and keeps the connection.
 *
 * @source KubeVirt v1.9.0 pkg/virt-launcher/notify-client/client.go
 */
export function createNotifySender(
  socketPath: string,
  options: NotifySenderOptions = {},
  deps: NotifySenderDeps = {},
): NotifySender {
  return new QueuedSender(socketPath, options, deps);
}

type Attempt = (client: NotifyClient, signal: AbortSignal) => Promise<CallResult<Response>>;

class QueuedSender implements NotifySender {
  readonly #socketPath: string;
  readonly #options: NotifySenderOptions;
  readonly #connect: NonNullable<NotifySenderDeps['connect']>;
  readonly #nowMs: NonNullable<NotifySenderDeps['nowMs']>;
  readonly #sleep: NonNullable<NotifySenderDeps['sleep']>;
  readonly #closing = new AbortController();
  #client: NotifyClient | undefined;
  /** The end of the queue: settles when every event before it has been sent or given up. */
  #tail: Promise<unknown> = Promise.resolve();
  #waiting = 0;

  constructor(socketPath: string, options: NotifySenderOptions, deps: NotifySenderDeps) {
    this.#socketPath = socketPath;
    this.#options = options;
    this.#connect = deps.connect ?? ((path, signal) => connectNotify(path, { signal }));
    this.#nowMs = deps.nowMs ?? (() => performance.now());
    this.#sleep = deps.sleep ?? ((ms, signal) => sleep(ms, undefined, { signal }));
  }

  sendDomainEvent(event: DeepPartial<DomainEventRequest>, signal?: AbortSignal): Promise<CallResult<Response>> {
    return this.#enqueue((client, s) => client.handleDomainEvent(event, { signal: s }), signal);
  }

  sendK8sEvent(event: DeepPartial<K8sEventRequest>, signal?: AbortSignal): Promise<CallResult<Response>> {
    return this.#enqueue((client, s) => client.handleK8sEvent(event, { signal: s }), signal);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort();
    await this.#tail;
    this.#dropClient();
  }

  #enqueue(attempt: Attempt, signal: AbortSignal | undefined): Promise<CallResult<Response>> {
    const max = this.#options.maxWaiting ?? MAX_WAITING;
    if (this.#waiting >= max) return Promise.resolve(failure('TooLarge', `${max} events are waiting to be sent`));
    this.#waiting++;
    const all = signal === undefined ? this.#closing.signal : AbortSignal.any([signal, this.#closing.signal]);
    const result = this.#tail.then(() => this.#send(attempt, all)).finally(() => this.#waiting--);
    this.#tail = result;
    return result;
  }

  async #send(attempt: Attempt, signal: AbortSignal): Promise<CallResult<Response>> {
    const deadlineAtMs = this.#nowMs() + (this.#options.totalTimeoutMs ?? TOTAL_TIMEOUT_MS);
    for (;;) {
      const result = await this.#tryOnce(attempt, signal);
      if (result.ok || isRefusal(result.error)) return result;
      if (signal.aborted) return failure('Aborted', 'sending the event was aborted');
      const waitMs = this.#options.retryIntervalMs ?? RETRY_INTERVAL_MS;
      if (this.#nowMs() + waitMs >= deadlineAtMs) return result;
      // The abort is seen by the next try.
      await this.#sleep(waitMs, signal).catch(() => undefined);
    }
  }

  async #tryOnce(attempt: Attempt, signal: AbortSignal): Promise<CallResult<Response>> {
    try {
      this.#client ??= await this.#connect(this.#socketPath, signal);
      const result = await attempt(this.#client, signal);
      // Whatever went wrong below the answer, the next try starts with dial and version check.
      if (!result.ok && !isRefusal(result.error)) this.#dropClient();
      return result;
    } catch (caught) {
      if (caught instanceof ProtoError) return { ok: false, error: caught };
      throw caught;
    }
  }

  #dropClient(): void {
    this.#client?.close();
    this.#client = undefined;
  }
}

function failure(code: 'Aborted' | 'TooLarge', message: string): CallResult<Response> {
  return { ok: false, error: new ProtoError(code, message) };
}
