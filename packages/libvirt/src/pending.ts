import type { Expiring } from './deadlines.ts';
import type { OutgoingDescriptors } from './descriptors.ts';
import { LibvirtError } from './errors.ts';
import type { Procedure } from './procedures.ts';

/** Called in the packet loop, before any later packet is looked at; `isAbandoned`: the caller has given up. */
export type ReplyHook = (ret: unknown, isAbandoned: boolean) => void;

/** One call from its making to its answer. */
export class PendingCall implements Expiring {
  readonly procedure: Procedure;
  readonly promise: Promise<unknown>;
  /** Runs synchronously with the reply, also when the caller has given up meanwhile. */
  readonly onReply: ReplyHook | undefined;
  /** The whole packet; its serial is put in when it is sent. */
  readonly packet: Buffer;
  serial = 0;
  /** In the time of `performance.now()`. */
  readonly deadlineAtMs: number;
  readonly #timeoutMs: number;
  #descriptors: OutgoingDescriptors | undefined;
  #isSettled = false;
  #onGiveUp: () => void = () => undefined;
  #signal: AbortSignal | undefined;
  readonly #onAbort = (): void => this.#giveUp(abortError(this.procedure.name, this.#signal?.reason));
  #resolve!: (value: unknown) => void;
  #reject!: (error: LibvirtError) => void;

  /**
   * @param limits time from `nowMs` on, 0 is no limit.
   * @param descriptors closed by the call unless they are taken.
   */
  constructor(
    procedure: Procedure,
    packet: Buffer,
    onReply: ReplyHook | undefined,
    limits: { readonly timeoutMs: number; readonly nowMs: number },
    descriptors?: OutgoingDescriptors,
  ) {
    this.procedure = procedure;
    this.packet = packet;
    this.#descriptors = descriptors;
    this.onReply = onReply;
    this.#timeoutMs = limits.timeoutMs;
    this.deadlineAtMs = limits.timeoutMs > 0 ? limits.nowMs + limits.timeoutMs : Infinity;
    this.promise = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
  }

  /** True once the caller has its answer; a reply that comes later is dropped. */
  get isSettled(): boolean {
    return this.#isSettled;
  }

  /** Hands over what goes along with the packet; the receiver closes it. */
  takeDescriptors(): OutgoingDescriptors | undefined {
    const descriptors = this.#descriptors;
    this.#descriptors = undefined;
    return descriptors;
  }

  /** Lets a signal end the call; `onGiveUp` comes when that or the deadline does. */
  onGiveUp(signal: AbortSignal | undefined, onGiveUp: () => void): void {
    this.#onGiveUp = onGiveUp;
    this.#signal = signal;
    signal?.addEventListener('abort', this.#onAbort, { once: true });
  }

  /** The deadline has come. */
  expire(): void {
    if (!this.#isSettled) this.#giveUp(timeoutError(this.procedure.name, this.#timeoutMs, this.serial !== 0));
  }

  succeed(value: unknown): void {
    if (this.#settle()) this.#resolve(value);
  }

  fail(error: LibvirtError): void {
    if (this.#settle()) this.#reject(error);
  }

  #giveUp(error: LibvirtError): void {
    this.fail(error);
    this.#onGiveUp();
  }

  #settle(): boolean {
    if (this.#isSettled) return false;
    this.#isSettled = true;
    this.takeDescriptors()?.[Symbol.dispose]();
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
