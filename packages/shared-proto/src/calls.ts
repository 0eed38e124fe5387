import type { ProtoError } from './errors.ts';

/** Options of one call. */
export interface CallOptions {
  /** Ends the call early; it then fails with `Aborted`. The peer may have done the work all the same. */
  readonly signal?: AbortSignal | undefined;
  /** Overrides the deadline that KubeVirt's handler gives this RPC. */
  readonly timeoutMs?: number | undefined;
}

/**
 * The outcome of a call.
 *
 * A peer that answers `success` false fails with code `Failed`; `answer` then holds the whole answer, for the RPCs
 * that say more than success (RedefineCheckpoint, GetVMStats).
 */
export type CallResult<T> =
  { readonly ok: true; readonly value: T } | { readonly ok: false; readonly error: ProtoError; readonly answer?: T };

/** What a server tells a handler about the call that it serves. */
export interface CallContext {
  /** Aborted when the caller cancels, its deadline passes, its connection ends, or the server is stopped by force. */
  readonly signal: AbortSignal;
  /** What the caller says that it is: `grpc-go/1.65.0`. */
  readonly userAgent?: string | undefined;
}

/**
 * Returns the value of a call that went well.
 *
 * @throws {ProtoError} the call's error.
 */
export function unwrap<T>(result: CallResult<T>): T {
  if (!result.ok) throw result.error;
  return result.value;
}
