/** Stable codes of everything this package refuses. */
export type VmModelErrorCode = 'InvalidJson' | 'InvalidXml' | 'InvalidTime' | 'InvalidValue' | 'InvalidVmi';

/** Every failure that leaves this package. `code` is stable; `message` is for people. */
export class VmModelError extends Error {
  override readonly name = 'VmModelError';
  readonly code: VmModelErrorCode;

  constructor(code: VmModelErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}
