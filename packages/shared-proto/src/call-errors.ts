import { status } from '@grpc/grpc-js';

import type { CallFailure } from './channel.ts';
import { ProtoError, type ProtoErrorCode } from './errors.ts';
import { goQuote } from './go-quote.ts';
import { renderStatus } from './grpc-status.ts';

const CODES: Readonly<Record<number, ProtoErrorCode>> = {
  [status.CANCELLED]: 'Disconnected',
  [status.UNAVAILABLE]: 'Unavailable',
  [status.UNIMPLEMENTED]: 'Unimplemented',
  [status.DEADLINE_EXCEEDED]: 'DeadlineExceeded',
  [status.RESOURCE_EXHAUSTED]: 'TooLarge',
};

const KINDS: Readonly<Partial<Record<CallFailure['kind'], ProtoErrorCode>>> = { aborted: 'Aborted', closed: 'Closed' };

/** Codes whose text KubeVirt's handler passes on unchanged. */
const UNCHANGED: readonly ProtoErrorCode[] = ['Disconnected', 'Unimplemented', 'Aborted', 'Closed'];

/** How the errors of one RPC read. */
export interface ErrorTexts {
  /** For a gRPC error that is rendered as Go prints it. */
  call(rendered: string): string;
  /** For an answer of `success` false. */
  answer(message: string): string;
  /** Whether `call` is for every gRPC error, instead of those alone that KubeVirt does not pass on unchanged. */
  readonly changesAll?: boolean;
}

/**
 * The texts of a command.
 *
 * @source KubeVirt v1.9.0 pkg/virt-handler/cmd-client/errors.go
 */
export function commandTexts(command: string): ErrorTexts {
  return {
    call: (rendered) => `unknown error encountered sending command ${command}: ${rendered}`,
    answer: (message) => `server error. command ${command} failed: ${goQuote(message)}`,
  };
}

/** The texts of an RPC whose gRPC errors KubeVirt's handler passes on as they are. */
export function plainTexts(name: string): ErrorTexts {
  return { call: (rendered) => rendered, answer: (message) => commandTexts(name).answer(message) };
}

/** Turns a call without an answer into an error. */
export function callError(failure: CallFailure, texts: ErrorTexts): ProtoError {
  const code = KINDS[failure.kind] ?? CODES[failure.code] ?? 'Rpc';
  const rendered = renderStatus(failure.code, failure.details);
  const isUnchanged = UNCHANGED.includes(code) && texts.changesAll !== true;
  return new ProtoError(code, isUnchanged ? rendered : texts.call(rendered), {
    detail: failure.details,
    grpcCode: failure.code,
    isOversized: failure.kind === 'oversized',
  });
}

/** Turns an answer of `success` false into an error; an empty message makes it no success (FM-1.3). */
export function answerError(message: string, texts: ErrorTexts): ProtoError {
  return new ProtoError('Failed', texts.answer(message), { detail: message });
}

/** Turns bytes that are no message into an error. */
export function decodeError(caught: unknown, texts: ErrorTexts): ProtoError {
  const text = caught instanceof Error ? caught.message : String(caught);
  const details = `grpc: failed to unmarshal the received message: ${text}`;
  return new ProtoError('Rpc', texts.call(renderStatus(status.INTERNAL, details)), {
    detail: details,
    grpcCode: status.INTERNAL,
    cause: caught,
  });
}
