import { ErrorDomain, ErrorLevel, ErrorNumber } from './gen/constants.gen.ts';

/**
 * Where an error was made.
 *
 * - `Daemon`: the daemon answered the call with an error; all libvirt fields are the daemon's.
 * - `ConnectFailed`: no connection: socket missing, refused, not a libvirt daemon, opening timed out.
 * - `AuthFailed`: the daemon wants an authentication that this client does not speak (SASL).
 * - `ConnectionLost`: the socket ended while the call was pending, or the daemon stopped answering pings.
 * - `Closed`: the connection was closed by its owner, or has given up reconnecting.
 * - `Timeout`: no answer before the call's deadline; the daemon may still carry the call out.
 * - `Aborted`: the call's AbortSignal fired; the daemon may still carry the call out.
 * - `QueueFull`: too many calls are waiting for a slot.
 * - `InvalidArgument`: an argument cannot be encoded; nothing was sent.
 * - `Protocol`: the peer sent bytes that are not this protocol; the connection is given up.
 * - `Unsupported`: neither this client nor the daemon can do the call.
 * - `StreamFailed`: a stream ended in another way than by its end of data.
 */
export type LibvirtErrorKind =
  | 'Daemon'
  | 'ConnectFailed'
  | 'AuthFailed'
  | 'ConnectionLost'
  | 'Closed'
  | 'Timeout'
  | 'Aborted'
  | 'QueueFull'
  | 'InvalidArgument'
  | 'Protocol'
  | 'Unsupported'
  | 'StreamFailed';

/** The libvirt code that the C library reports in the same situation. */
const CODE_OF: Readonly<Record<Exclude<LibvirtErrorKind, 'Daemon'>, number>> = {
  ConnectFailed: ErrorNumber.SYSTEM_ERROR,
  AuthFailed: ErrorNumber.AUTH_FAILED,
  ConnectionLost: ErrorNumber.SYSTEM_ERROR,
  Closed: ErrorNumber.INTERNAL_ERROR,
  Timeout: ErrorNumber.OPERATION_TIMEOUT,
  Aborted: ErrorNumber.OPERATION_ABORTED,
  QueueFull: ErrorNumber.RESOURCE_BUSY,
  InvalidArgument: ErrorNumber.INVALID_ARG,
  Protocol: ErrorNumber.RPC,
  Unsupported: ErrorNumber.NO_SUPPORT,
  StreamFailed: ErrorNumber.OPERATION_FAILED,
};

/** Everything of an error besides its message. */
export interface LibvirtErrorFields {
  readonly kind: LibvirtErrorKind;
  readonly code: number;
  readonly domain: number;
  readonly level: number;
  /** Untranslated format; differs between releases, never parse it. */
  readonly str1?: string | null;
  /** Usually the message without its generic prefix. */
  readonly str2?: string | null;
  readonly str3?: string | null;
  /** errno for code SYSTEM_ERROR, else -1 or a detail. */
  readonly int1?: number;
  readonly int2?: number;
  /** The call that failed, `DOMAIN_CREATE_WITH_FLAGS` for example. */
  readonly procedure?: string | undefined;
}

/** Every failure that leaves this package: the daemon's own errors, and those of the client, told apart by `kind`. */
export class LibvirtError extends Error {
  override readonly name = 'LibvirtError';
  readonly kind: LibvirtErrorKind;
  /** `ErrorNumber`: 42 is NO_DOMAIN. For errors of the client, the code that the C library gives. */
  readonly code: number;
  /** `ErrorDomain`: which part of libvirt says so; RPC for errors of the client. */
  readonly domain: number;
  /** `ErrorLevel`: 1 warning, 2 error. */
  readonly level: number;
  readonly str1: string | null;
  readonly str2: string | null;
  readonly str3: string | null;
  readonly int1: number;
  readonly int2: number;
  readonly procedure: string | undefined;

  constructor(message: string, fields: LibvirtErrorFields, options?: ErrorOptions) {
    super(message, options);
    this.kind = fields.kind;
    this.code = fields.code;
    this.domain = fields.domain;
    this.level = fields.level;
    this.str1 = fields.str1 ?? null;
    this.str2 = fields.str2 ?? null;
    this.str3 = fields.str3 ?? null;
    this.int1 = fields.int1 ?? -1;
    this.int2 = fields.int2 ?? -1;
    this.procedure = fields.procedure;
  }

  /** An error made by the client itself. */
  static client(
    kind: Exclude<LibvirtErrorKind, 'Daemon'>,
    message: string,
    options: ErrorOptions & { readonly procedure?: string | undefined; readonly code?: number } = {},
  ): LibvirtError {
    const fields: LibvirtErrorFields = {
      kind,
      code: options.code ?? CODE_OF[kind],
      domain: ErrorDomain.RPC,
      level: ErrorLevel.ERROR,
      procedure: options.procedure,
    };
    return new LibvirtError(message, fields, options.cause === undefined ? undefined : { cause: options.cause });
  }

  /** The same error, as the failure of a certain call. */
  forProcedure(procedure: string): LibvirtError {
    const { kind, code, domain, level, str1, str2, str3, int1, int2 } = this;
    const fields = { kind, code, domain, level, str1, str2, str3, int1, int2, procedure };
    return new LibvirtError(this.message, fields, { cause: this });
  }

  /** The text that libvirt's Go binding prints, and that KubeVirt puts into logs and conditions. */
  goText(): string {
    return `virError(Code=${String(this.code)}, Domain=${String(this.domain)}, Message='${this.message}')`;
  }
}

/** True for a `LibvirtError`, and if codes are given, only for one of them. */
export function isLibvirtError(caught: unknown, ...codes: readonly number[]): caught is LibvirtError {
  return caught instanceof LibvirtError && (codes.length === 0 || codes.includes(caught.code));
}
