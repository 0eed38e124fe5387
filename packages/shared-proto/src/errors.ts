/** Codes of {@link ProtoError}; each one is explained in the README. */
export const PROTO_ERROR_CODES = [
  'Aborted',
  'BadDocument',
  'BadRequest',
  'Closed',
  'DeadlineExceeded',
  'DialFailed',
  'Disconnected',
  'Failed',
  'ListenFailed',
  'NoCommonVersion',
  'Rpc',
  'TooLarge',
  'Unavailable',
  'Unimplemented',
  'VersionCheckFailed',
  'VersionUnsupported',
] as const;

/** Stable name of a failure; match on this, never on a message. */
export type ProtoErrorCode = (typeof PROTO_ERROR_CODES)[number];

/** What a {@link ProtoError} carries beside its code and message. */
export interface ProtoErrorDetails extends ErrorOptions {
  /** The peer's own words: the `message` of its Response, or the details of its gRPC status. */
  readonly detail?: string;
  /** The gRPC status code, if the failure was one. */
  readonly grpcCode?: number;
  /** The message is larger than peers take, and was not sent. Default false. */
  readonly isOversized?: boolean;
}

/** Every failure that leaves this package. `message` is the text that KubeVirt's handler shows for it. */
export class ProtoError extends Error {
  override readonly name = 'ProtoError';
  readonly code: ProtoErrorCode;
  readonly detail: string | undefined;
  readonly grpcCode: number | undefined;
  readonly isOversized: boolean;

  constructor(code: ProtoErrorCode, message: string, details: ProtoErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.code = code;
    this.detail = details.detail;
    this.grpcCode = details.grpcCode;
    this.isOversized = details.isOversized ?? false;
  }
}

const CONNECTION_LOSS: readonly ProtoErrorCode[] = ['Disconnected', 'Unavailable', 'DialFailed', 'Closed'];
const RETRYABLE: readonly ProtoErrorCode[] = ['Disconnected', 'Unavailable', 'DialFailed', 'DeadlineExceeded'];
const GRPC_ABORTED = 10;

/**
 * Says whether a call failed because the peer is not there (any more). Kill, shutdown and delete count that as done.
 *
 * KubeVirt's handler counts `Disconnected` alone; an answer of Unavailable means the same and left VMIs undeletable.
 */
export function isConnectionLoss(error: ProtoError): boolean {
  return CONNECTION_LOSS.includes(error.code);
}

/** Says whether trying the same call again may help: transport errors, Unavailable, DeadlineExceeded and Aborted. */
export function isRetryable(error: ProtoError): boolean {
  return RETRYABLE.includes(error.code) || error.grpcCode === GRPC_ABORTED;
}

/**
 * Says whether a call failed for what was asked: the peer refused it, does not know the method, or the message is larger
 * than any peer takes. The same again would fail in the same way.
 */
export function isRefusal(error: ProtoError): boolean {
  return error.isOversized || error.code === 'Failed' || error.code === 'Unimplemented';
}
