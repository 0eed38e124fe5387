import { status } from '@grpc/grpc-js';

/** Go prints status codes by these names, in error texts that reach users. @source grpc-go codes/code_string.go */
const GO_NAMES: Readonly<Record<number, string>> = {
  [status.OK]: 'OK',
  [status.CANCELLED]: 'Canceled',
  [status.UNKNOWN]: 'Unknown',
  [status.INVALID_ARGUMENT]: 'InvalidArgument',
  [status.DEADLINE_EXCEEDED]: 'DeadlineExceeded',
  [status.NOT_FOUND]: 'NotFound',
  [status.ALREADY_EXISTS]: 'AlreadyExists',
  [status.PERMISSION_DENIED]: 'PermissionDenied',
  [status.RESOURCE_EXHAUSTED]: 'ResourceExhausted',
  [status.FAILED_PRECONDITION]: 'FailedPrecondition',
  [status.ABORTED]: 'Aborted',
  [status.OUT_OF_RANGE]: 'OutOfRange',
  [status.UNIMPLEMENTED]: 'Unimplemented',
  [status.INTERNAL]: 'Internal',
  [status.UNAVAILABLE]: 'Unavailable',
  [status.DATA_LOSS]: 'DataLoss',
  [status.UNAUTHENTICATED]: 'Unauthenticated',
};

/** Renders a gRPC error as Go prints it. */
export function renderStatus(code: number, details: string): string {
  return `rpc error: code = ${GO_NAMES[code] ?? `Code(${code})`} desc = ${details}`;
}
