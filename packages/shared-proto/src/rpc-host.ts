import type { Duplex } from 'node:stream';

import { ServerCredentials, type ServerUnaryCall, type sendUnaryData, status } from '@grpc/grpc-js';

import { normaliseAuthority } from './authority/connection.ts';
import type { CallContext } from './calls.ts';
import { createGuardedServer } from './guarded-server.ts';
import { MAX_RECEIVE_BYTES, MAX_SEND_BYTES, shortenStatusText, tooLargeText } from './limits.ts';

/** One RPC as a server has it: bytes in, bytes out. What it throws should be a {@link StatusError}. */
export interface RpcMethod {
  readonly path: string;
  handle(request: Buffer, context: CallContext): Promise<Uint8Array>;
}

/** A failure that is to travel as a gRPC status; internal to the servers of this package. */
export class StatusError extends Error {
  override readonly name = 'StatusError';
  readonly code: status;

  constructor(code: status, details: string) {
    super(details);
    this.code = code;
  }
}

/** Limits of a host. */
export interface HostOptions {
  readonly maxConnections: number;
  /** Calls that one connection may have under way. */
  readonly maxCalls: number;
  readonly onFault: (error: Error) => void;
}

/** Serves RPCs on connections that others have accepted. */
export interface RpcHost {
  readonly connectionCount: number;
  accept(connection: Duplex): void;
  /** Lets running calls end, and cuts what is left after the grace time. */
  stop(graceMs: number): Promise<void>;
}

const SERVER_OPTIONS = {
  'grpc.max_receive_message_length': MAX_RECEIVE_BYTES,
  'grpc.enable_channelz': 0,
};

/** How a peer looks that closed without reading what was sent to it, as liveness probes do. */
const HANG_UPS: readonly string[] = ['EPIPE', 'ECONNRESET'];

const asBuffer = (bytes: Uint8Array): Buffer => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
const asIs = (bytes: Buffer): Buffer => bytes;

/** Creates a host for some RPCs; every other one answers UNIMPLEMENTED. */
export function createRpcHost(methods: readonly RpcMethod[], options: HostOptions): RpcHost {
  const server = createGuardedServer(
    { ...SERVER_OPTIONS, 'grpc.max_concurrent_streams': options.maxCalls },
    options.onFault,
  );
  for (const method of methods) {
    server.register(
      method.path,
      (call: UnaryCall, answer: Answer) => serveCall(method, call, answer),
      asBuffer,
      asIs,
      'unary',
    );
  }
  const injector = server.createConnectionInjector(ServerCredentials.createInsecure());
  const connections = new Set<Duplex>();
  let isStopped = false;
  let onEmpty = (): void => undefined;
  return {
    get connectionCount() {
      return connections.size;
    },
    accept: (raw) => {
      if (isStopped || connections.size >= options.maxConnections) {
        if (!isStopped) options.onFault(new Error(`refused a connection: ${connections.size} are open`));
        raw.on('error', () => undefined);
        raw.destroy();
        return;
      }
      const connection = normaliseAuthority(raw);
      connections.add(connection);
      connection.once('close', () => {
        connections.delete(connection);
        if (connections.size === 0) onEmpty();
      });
      connection.on('error', (error: NodeJS.ErrnoException) => {
        if (!HANG_UPS.includes(error.code ?? '')) options.onFault(error);
      });
      injector.injectConnection(connection);
    },
    stop: async (graceMs) => {
      isStopped = true;
      // Tells every peer, and closes its connection when its calls have ended. Its callback comes too early for that:
      // grpc-js takes a session that is closing for one that is closed.
      server.tryShutdown(() => undefined);
      const timer = connections.size === 0 ? undefined : setTimeout(() => onEmpty(), graceMs);
      if (timer !== undefined) await new Promise<void>((resolve) => (onEmpty = resolve));
      clearTimeout(timer);
      server.forceShutdown();
      for (const connection of connections) connection.destroy();
    },
  };
}

type UnaryCall = ServerUnaryCall<Buffer, Uint8Array>;
type Answer = sendUnaryData<Uint8Array>;

function serveCall(method: RpcMethod, call: UnaryCall, answer: Answer): void {
  const abort = new AbortController();
  call.on('cancelled', () => abort.abort());
  const [agent] = call.metadata.get('user-agent');
  const context = { signal: abort.signal, userAgent: agent === undefined ? undefined : String(agent) };
  void runCall(method, call.request, context).then((result) => {
    if (result instanceof StatusError) answer({ code: result.code, details: shortenStatusText(result.message) });
    else answer(null, result);
  });
}

async function runCall(method: RpcMethod, request: Buffer, context: CallContext): Promise<Uint8Array | StatusError> {
  try {
    const bytes = await method.handle(request, context);
    if (bytes.length <= MAX_SEND_BYTES) return bytes;
    return new StatusError(status.RESOURCE_EXHAUSTED, tooLargeText(bytes.length));
  } catch (caught) {
    if (caught instanceof StatusError) return caught;
    return new StatusError(status.UNKNOWN, errorText(caught));
  }
}

/** The text of anything thrown; never empty, since an empty message would read as success to some peers (FM-1.3). */
export function errorText(caught: unknown): string {
  const text = caught instanceof Error ? caught.message : String(caught);
  return text === '' ? 'unknown error' : text;
}
