/** Every code of {@link VirtwireError}; the README lists the same ones. */
export const VIRTWIRE_ERROR_CODES = [
  'AlreadyExists',
  'AlreadyRunning',
  'BadInput',
  'BadManifest',
  'BadState',
  'Cancelled',
  'Conflict',
  'MissingFile',
  'MissingTool',
  'NoLauncher',
  'NotFound',
  'NotRoot',
  'SandboxFailed',
  'Timeout',
  'ToolFailed',
  'Usage',
] as const;

/** Stable code of a failure that leaves this package. */
export type VirtwireErrorCode = (typeof VIRTWIRE_ERROR_CODES)[number];

/** Every failure that leaves this package. `code` is stable; `message` is for people: what, where, remedy. */
export class VirtwireError extends Error {
  override readonly name = 'VirtwireError';
  readonly code: VirtwireErrorCode;

  constructor(code: VirtwireErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }

  /** Wraps anything caught at a boundary; keeps it as `cause`. */
  static from(caught: unknown, code: VirtwireErrorCode, doing: string): VirtwireError {
    if (caught instanceof VirtwireError) return caught;
    return new VirtwireError(code, `${doing}: ${errorText(caught)}`, { cause: caught });
  }
}

/** Text of anything that was thrown, on one line. */
export function errorText(caught: unknown): string {
  return (caught instanceof Error ? caught.message : String(caught)).replace(/\s*\n\s*/g, '; ');
}

/** True when the error carries this errno or error code, as Node's file system errors do. */
export function hasCode(caught: unknown, code: string): boolean {
  return caught instanceof Error && 'code' in caught && caught.code === code;
}
