/** Every code of {@link HostError}; the README says what each one means. */
export const HOST_ERROR_CODES = [
  'ConnectTimeout',
  'MessageTimeout',
  'NamespaceLost',
  'Netlink',
  'PeerUnknown',
  'ProcessGone',
  'Syscall',
  'ToolFailed',
  'ToolNotFound',
  'ToolOutputTooLarge',
  'ToolTimeout',
  'TooManyLinks',
  'UnsafePath',
] as const;

/** Stable code of a failure that leaves this package. */
export type HostErrorCode = (typeof HOST_ERROR_CODES)[number];

/** Extra facts of a failure. `errno` is the kernel's name of it (`ENOENT`), if the kernel said no. */
export interface HostErrorDetails {
  readonly errno?: string | undefined;
  readonly cause?: unknown;
}

/**
 * Every failure that leaves this package. `code` is stable, `errno` is the kernel's name for it where there is one,
 * `message` is for people.
 */
export class HostError extends Error {
  override readonly name = 'HostError';
  readonly code: HostErrorCode;
  readonly errno: string | undefined;

  constructor(code: HostErrorCode, message: string, details: HostErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.code = code;
    this.errno = details.errno;
  }

  /** Wraps anything caught at a boundary and keeps it as `cause`; the errno of a Node system error is carried over. */
  static from(caught: unknown, code: HostErrorCode, doing: string): HostError {
    if (caught instanceof HostError) return caught;
    const text = caught instanceof Error ? caught.message : String(caught);
    return new HostError(code, `${doing}: ${text}`, { cause: caught, errno: errnoOf(caught) });
  }
}

/** The kernel's name of a failure (`ENOENT`, `EEXIST`), from a {@link HostError} or a Node system error. */
export function errnoOf(caught: unknown): string | undefined {
  if (caught instanceof HostError) return caught.errno;
  if (!(caught instanceof Error) || !('code' in caught)) return undefined;
  const { code } = caught;
  return typeof code === 'string' && /^E[A-Z0-9]+$/.test(code) ? code : undefined;
}
