import { status } from '@grpc/grpc-js';

import { callError, decodeError, type ErrorTexts } from '../call-errors.ts';
import { type CallFailure, dialUnix } from '../channel.ts';
import { MAX_SEND_BYTES } from '../limits.ts';

/** How long a sidecar is waited for. */
export interface SidecarCallOptions {
  /** For the connection. */
  readonly dialTimeoutMs: number;
  /** For the answer, from when the connection is there. */
  readonly timeoutMs: number;
  /** Ends both early; the call then fails with `Aborted`. */
  readonly signal?: AbortSignal | undefined;
}

/** Reads a message. */
interface Decoder<T> {
  decode(bytes: Uint8Array): T;
}

const TEXTS: ErrorTexts = { call: (rendered) => rendered, answer: (message) => message };
const DEADLINE_EXCEEDED: number = status.DEADLINE_EXCEEDED;
const TOO_LARGE = /^Received message larger than max \((\d+) vs (\d+)\)$/;

/** A failure in grpc-go's words, which people know from the launcher written in Go. */
function inGoWords(failure: CallFailure): CallFailure {
  const { code, details } = failure;
  if (code === DEADLINE_EXCEEDED && details.startsWith('Deadline exceeded')) {
    return { ...failure, details: 'context deadline exceeded' };
  }
  const sizes = TOO_LARGE.exec(details);
  if (sizes === null) return failure;
  return { ...failure, details: `grpc: received message larger than max (${sizes[1] ?? ''} vs. ${sizes[2] ?? ''})` };
}

/**
 * Makes one call on a connection of its own. A sidecar is called a few times in its life, and may come back under its
 * socket in between.
 *
 * @throws {ProtoError} `DialFailed`, or what the call failed with; the message is what the launcher in Go would show.
 */
export async function callSidecar<A>(
  socketPath: string,
  path: string,
  request: Uint8Array,
  answer: Decoder<A>,
  options: SidecarCallOptions,
): Promise<A> {
  const { dialTimeoutMs, timeoutMs, signal } = options;
  using channel = await dialUnix(socketPath, { timeoutMs: dialTimeoutMs, signal, maxReceiveBytes: MAX_SEND_BYTES });
  const result = await channel.call(path, request, { timeoutMs, signal });
  if (!result.ok) throw callError(inGoWords(result.failure), TEXTS);
  try {
    return answer.decode(result.bytes);
  } catch (caught) {
    throw decodeError(caught, TEXTS);
  }
}
