/** Codes of {@link PipeError}; each one is explained in the README. */
export const PIPE_ERROR_CODES = ['InjectFailed', 'OwnerFailed', 'PodGone'] as const;

/** Stable name of a failure; match on this, never on a message. */
export type PipeErrorCode = (typeof PIPE_ERROR_CODES)[number];

/** Every failure that leaves this package. */
export class PipeError extends Error {
  override readonly name = 'PipeError';
  readonly code: PipeErrorCode;

  constructor(code: PipeErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }

  /** Wraps anything caught at a boundary; keeps it as `cause`. */
  static from(caught: unknown, code: PipeErrorCode, doing: string): PipeError {
    if (caught instanceof PipeError) return caught;
    const text = caught instanceof Error ? caught.message : String(caught);
    return new PipeError(code, `${doing}: ${text}`, { cause: caught });
  }
}
