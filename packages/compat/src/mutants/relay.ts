import { dialGrpc } from '../emulate/transport/grpc-client.ts';
import type { GrpcConnection, RawAnswer } from '../emulate/transport/grpc-client.ts';
import { serveGrpc } from '../emulate/transport/grpc-server.ts';
import type { IncomingCall, OutgoingAnswer } from '../emulate/transport/grpc-server.ts';
import { CompatError } from '../errors.ts';

/** One call that went through a relay. */
export interface RelayedCall {
  readonly call: IncomingCall;
  readonly answer: RawAnswer;
  readonly atMs: number;
  readonly durationMs: number;
}

/** What a relay does beside passing calls on. */
export interface RelayOptions {
  /** Told of every call when it is over. */
  readonly onCall?: (relayed: RelayedCall) => void;
  readonly changeRequest?: (path: string, bytes: Uint8Array) => Uint8Array;
  readonly changeAnswer?: (path: string, answer: RawAnswer) => RawAnswer;
  /** Answers instead of the server; undefined passes the call on. */
  readonly refuse?: (call: IncomingCall) => RawAnswer | undefined;
  /** False for a server of Node that breaks calls whose authority is a path. Default true. */
  readonly takesAnyAuthority?: boolean;
}

/** A relay that listens. */
export interface Relay extends AsyncDisposable {
  readonly callCount: number;
}

const DEFAULT_CALL_LIMIT_MS = 60_000;
const DIAL_LIMIT_MS = 2_000;

/** Connections to the server, one per authority that clients use: the server sees what it would see without a relay. */
class Upstream implements Disposable {
  readonly #to: string;
  readonly #connections = new Map<string, GrpcConnection>();

  constructor(to: string) {
    this.#to = to;
  }

  async call({ path, authority, timeoutMs }: IncomingCall, request: Uint8Array): Promise<RawAnswer> {
    try {
      const connection = await this.#connect(authority);
      return await connection.call(path, request, timeoutMs ?? DEFAULT_CALL_LIMIT_MS);
    } catch (caught) {
      const details = caught instanceof CompatError ? caught.message : String(caught);
      return { code: 14, details, bytes: new Uint8Array() };
    }
  }

  async #connect(authority: string): Promise<GrpcConnection> {
    const known = this.#connections.get(authority);
    if (known?.isOpen === true) return known;
    const connection = await dialGrpc(this.#to, { authority, userAgent: 'virtwire-relay' }, DIAL_LIMIT_MS);
    this.#connections.get(authority)?.[Symbol.dispose]();
    this.#connections.set(authority, connection);
    return connection;
  }

  [Symbol.dispose](): void {
    for (const connection of this.#connections.values()) connection[Symbol.dispose]();
  }
}

const outgoing = ({ code, details, bytes }: RawAnswer): OutgoingAnswer =>
  code === 0 ? { kind: 'message', bytes } : { kind: 'status', code, details };

/**
 * Stands between clients and a gRPC server on unix sockets and passes every call on, byte for byte.
 *
 * The server need not be there yet: a call that cannot be passed on is answered with code 14.
 *
 * @throws {CompatError} `ServeFailed`.
 */
export async function startRelay(listen: string, to: string, options: RelayOptions = {}): Promise<Relay> {
  const upstream = new Upstream(to);
  let callCount = 0;
  const pass = async (call: IncomingCall): Promise<OutgoingAnswer> => {
    callCount += 1;
    const startedAtMs = performance.now();
    const refused = options.refuse?.(call);
    const request = options.changeRequest?.(call.path, call.request) ?? call.request;
    const answered = refused ?? (await upstream.call(call, request));
    const answer = options.changeAnswer?.(call.path, answered) ?? answered;
    options.onCall?.({ call, answer, atMs: startedAtMs, durationMs: performance.now() - startedAtMs });
    return outgoing(answer);
  };
  const server = await serveGrpc(listen, pass, { takesAnyAuthority: options.takesAnyAuthority ?? true });
  return {
    get callCount() {
      return callCount;
    },
    [Symbol.asyncDispose]: async () => {
      await server.kill();
      upstream[Symbol.dispose]();
    },
  };
}
