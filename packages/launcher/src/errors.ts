/** Every failure code of the launcher package. */
export type LauncherErrorCode =
  | 'BackupFailed'
  | 'BadFlag'
  | 'BadRequest'
  | 'Busy'
  | 'CmdServerFailed'
  | 'ConvertFailed'
  | 'CredentialsFailed'
  | 'DirectoryFailed'
  | 'DiskFailed'
  | 'DomainNotFound'
  | 'DomainTimeout'
  | 'EarlyExit'
  | 'GuestCommandFailed'
  | 'HookFailed'
  | 'IommuFailed'
  | 'LibvirtUnavailable'
  | 'MigrationFailed'
  | 'NetworkFailed'
  | 'SimulatedCrash'
  | 'StandaloneFailed'
  | 'StatsUnavailable';

/** Every failure that leaves this package. `code` is stable; `message` is for people and goes over the wire unchanged. */
export class LauncherError extends Error {
  override readonly name = 'LauncherError';
  readonly code: LauncherErrorCode;

  constructor(code: LauncherErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }

  /** Wraps anything caught at a boundary under a prefix; keeps it as `cause`. */
  static from(caught: unknown, code: LauncherErrorCode, doing: string): LauncherError {
    return new LauncherError(code, `${doing}${textOf(caught)}`, { cause: caught });
  }
}

/** Text of anything that was thrown. */
export function textOf(caught: unknown): string {
  return caught instanceof Error ? caught.message : String(caught);
}
