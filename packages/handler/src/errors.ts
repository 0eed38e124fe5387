/** Every code of {@link HandlerError}; the README lists the same ones. */
export const HANDLER_ERROR_CODES = [
  'Conflict',
  'CriticalNetwork',
  'GhostRecord',
  'Internal',
  'Invalid',
  'Irrecoverable',
  'LauncherUnreachable',
  'NotFound',
  'NotifyPipe',
  'NotifyServer',
  'SecureBootMismatch',
  'UsageError',
  'VersionMismatch',
] as const;

/** Stable code of a failure that leaves this package. */
export type HandlerErrorCode = (typeof HANDLER_ERROR_CODES)[number];

/** Every failure that leaves this package. `code` is stable; `message` is for people. */
export class HandlerError extends Error {
  override readonly name = 'HandlerError';
  readonly code: HandlerErrorCode;

  constructor(code: HandlerErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }

  /** Wraps anything caught at a boundary; keeps it as `cause`. */
  static from(caught: unknown, code: HandlerErrorCode, doing: string): HandlerError {
    if (caught instanceof HandlerError) return caught;
    return new HandlerError(code, `${doing}: ${errorText(caught)}`, { cause: caught });
  }
}

/** Text of anything that was thrown. */
export function errorText(caught: unknown): string {
  return caught instanceof Error ? caught.message : String(caught);
}

/** True when `code` is found anywhere in the chain of causes. */
export function hasErrorCode(caught: unknown, code: string): boolean {
  for (let error = caught, depth = 0; error instanceof Error && depth < 16; error = error.cause, depth += 1) {
    if ('code' in error && error.code === code) return true;
  }
  return false;
}
