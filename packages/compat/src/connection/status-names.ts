/** Names of gRPC's status codes, by code, as Go prints them. @source google.golang.org/grpc codes/code_string.go */
export const STATUS_NAMES: readonly string[] = [
  ...['OK', 'Canceled', 'Unknown', 'InvalidArgument', 'DeadlineExceeded', 'NotFound', 'AlreadyExists'],
  ...['PermissionDenied', 'ResourceExhausted', 'FailedPrecondition', 'Aborted', 'OutOfRange', 'Unimplemented'],
  ...['Internal', 'Unavailable', 'DataLoss', 'Unauthenticated'],
];
