import type { CallOptions } from './caller.ts';
import { LibvirtError } from './errors.ts';
import type { Procedure } from './procedures.ts';

/** Called in the packet loop, before any later packet is looked at; `isAbandoned`: the caller has given up. */
export type ReplyHook = (ret: unknown, isAbandoned: boolean) => void;

/** One call from its making to its answer. */
export class PendingCall {
  readonly procedure: Procedure;
  readonly promise: Promise<unknown>;
  /** Runs synchronously with the reply, also when the caller has given up meanwhile. */
  readonly onReply: ReplyHook | undefined;
  /** The whole packet; its serial is put in when it is sent. */
  readonly packet: Buffer;
  serial = 0;
  #isSettled = false;
  #timer: NodeJS.Timeout | undefined;
  #signal: AbortSignal | undefined;
  readonly #onAbort = (): void => this.fail(abortError(this.procedure.name, this.#signal?.reason));
  #resolve!: (value: unknown) => void;
  #reject!: (error: LibvirtError) => void;

  constructor(procedure: Procedure, packet: Buffer, onReply: ReplyHook | undefined) {
    this.procedure = procedure;
    this.packet = packet;
    this.onReply = onReply;
    this.promise = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
  }

  /** True once the caller has its answer; a reply that comes later is dropped. */
  get isSettled(): boolean {
    return this.#isSettled;
  }

  /** Starts deadline and abort signal; `onGiveUp` comes when one of them ends the call. */
  limit(options: CallOptions, defaultTimeoutMs: number, onGiveUp: () => void): void {
    const timeoutMs = options.timeoutMs ?? defaultTimeoutMs;
    const signal = options.signal;
    if (signal !== undefined) {
      this.#signal = signal;
      signal.addEventListener('abort', this.#onAbort, { once: true });
      this.promise.catch(onGiveUp);
    }
    if (timeoutMs > 0) {
      this.#timer = setTimeout(() => {
        this.fail(timeoutError(this.procedure.name, timeoutMs, this.serial !== 0));
        onGiveUp();
      }, timeoutMs);
    }
  }

  succeed(value: unknown): void {
    if (this.#settle()) this.#resolve(value);
  }

  fail(error: LibvirtError): void {
    if (this.#settle()) this.#reject(error);
  }

  #settle(): boolean {
    if (this.#isSettled) return false;
    this.#isSettled = true;
    clearTimeout(this.#timer);
    this.#signal?.removeEventListener('abort', this.#onAbort);
    return true;
  }
}

/** The error of a call whose AbortSignal fired. */
export function abortError(procedure: string | undefined, reason: unknown): LibvirtError {
  const why = reason instanceof Error ? reason.message : String(reason);
  const what = procedure === undefined ? 'aborted' : `${procedure} aborted`;
  return LibvirtError.client('Aborted', `${what}: ${why}`, { procedure, cause: reason });
}

function timeoutError(procedure: string, timeoutMs: number, isSent: boolean): LibvirtError {
  const where = isSent ? 'no answer from the daemon' : 'all slots taken by unanswered calls, not sent';
  return LibvirtError.client('Timeout', `${procedure} timed out after ${String(timeoutMs)} ms: ${where}`, {
    procedure,
  });
}
