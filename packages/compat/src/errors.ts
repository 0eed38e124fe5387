/** Every failure code of the compat package. */
export type CompatErrorCode =
  | 'BadOption'
  | 'CallFailed'
  | 'ConnectFailed'
  | 'DecodeFailed'
  | 'Deviation'
  | 'PeerCrashed'
  | 'SchemaUnknown'
  | 'ServeFailed'
  | 'WaitTimeout';

/** Every failure that leaves this package. `code` is stable; `message` is for people. */
export class CompatError extends Error {
  override readonly name = 'CompatError';
  readonly code: CompatErrorCode;

  constructor(code: CompatErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}
