import { connect as connectSocket } from 'node:net';
import { normalize } from 'node:path/posix';

import { Client, type ClientUnaryCall, connectivityState, credentials, Metadata, status } from '@grpc/grpc-js';

import { ProtoError } from './errors.ts';
import { MAX_RECEIVE_BYTES, MAX_SEND_BYTES, tooLargeText } from './limits.ts';
import { fitSocketPath } from './socket-path.ts';

/** How a call ended that got no answer. */
export interface CallFailure {
  /** `oversized`: the request is larger than peers take, and was not sent. */
  readonly kind: 'status' | 'aborted' | 'closed' | 'oversized';
  readonly code: number;
  readonly details: string;
}

/** The bytes of an answer, or why there is none. */
type RawResult = { readonly ok: true; readonly bytes: Buffer } | { readonly ok: false; readonly failure: CallFailure };

/** What a call needs beside its request. */
interface RawCallOptions {
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
}

/** A gRPC channel to a unix socket, with bytes for messages. */
export interface UnixChannel extends Disposable {
  call(path: string, request: Uint8Array, options: RawCallOptions): Promise<RawResult>;
  onLost(listener: () => void): Disposable;
}

/** Options of a dial. */
export interface DialOptions {
  readonly timeoutMs: number;
  /** The largest answer that is taken; `MAX_RECEIVE_BYTES` by default. */
  readonly maxReceiveBytes?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Longest delay that a timer of Node takes: such a channel never closes an idle connection by itself. */
const NEVER_IDLE_MS = 2 ** 31 - 1;
const CHANNEL_OPTIONS = {
  // The path, which grpc-go sent before KubeVirt v1.1, is refused by servers on Node (FM-1.2).
  'grpc.default_authority': 'localhost',
  'grpc.client_idle_timeout_ms': NEVER_IDLE_MS,
  'grpc.initial_reconnect_backoff_ms': 100,
  'grpc.max_reconnect_backoff_ms': 2_000,
  // Each client has its own connection, which dies with it.
  'grpc.use_local_subchannel_pool': 1,
  'grpc.enable_retries': 0,
  'grpc.enable_channelz': 0,
  'grpc.enable_http_proxy': 0,
  'grpc.service_config_disable_resolution': 1,
};

/** Failures of connect(2) that waiting does not cure. */
const FINAL_CONNECT_ERRORS: readonly string[] = [
  'EACCES',
  'ECONNREFUSED',
  'ELOOP',
  'ENAMETOOLONG',
  'ENOENT',
  'ENOTDIR',
  'ENOTSOCK',
  'EPROTOTYPE',
];

/**
 * Connects to a gRPC server on a unix socket and waits until it has answered with its HTTP/2 settings.
 *
 * @throws {ProtoError} `DialFailed` at once if the socket is missing or refuses, else when the time is over;
 *   `Aborted` by the signal.
 */
export async function dialUnix(socketPath: string, options: DialOptions): Promise<UnixChannel> {
  using stack = new DisposableStack();
  // Old records begin with two slashes, which a gRPC target would take for an authority.
  const fitted = stack.use(fit(normalize(socketPath).replace(/^\/+/, '/')));
  const { maxReceiveBytes = MAX_RECEIVE_BYTES } = options;
  const channelOptions = { ...CHANNEL_OPTIONS, 'grpc.max_receive_message_length': maxReceiveBytes };
  const client = new Client(`unix:${fitted.path}`, credentials.createInsecure(), channelOptions);
  stack.defer(() => client.close());
  await waitUntilReady(client, socketPath, fitted.path, options);
  return new GrpcUnixChannel(client, stack.move());
}

function fit(path: string): ReturnType<typeof fitSocketPath> {
  try {
    return fitSocketPath(path);
  } catch (caught) {
    throw dialError(path, caught instanceof Error ? caught.message : String(caught));
  }
}

function dialError(socketPath: string, text: string): ProtoError {
  return new ProtoError('DialFailed', `could not connect to ${socketPath}: ${text}`);
}

async function waitUntilReady(client: Client, name: string, path: string, options: DialOptions): Promise<void> {
  const deadlineAtMs = Date.now() + options.timeoutMs;
  const channel = client.getChannel();
  for (;;) {
    if (options.signal?.aborted) throw new ProtoError('Aborted', `connecting to ${name} was aborted`);
    const state = channel.getConnectivityState(true);
    if (state === connectivityState.READY) return;
    if (state === connectivityState.TRANSIENT_FAILURE) {
      const code = await probeSocket(path);
      if (code !== undefined && FINAL_CONNECT_ERRORS.includes(code)) throw dialError(name, `connect ${code}`);
    }
    if (Date.now() >= deadlineAtMs) throw dialError(name, 'context deadline exceeded');
    await stateChange(client, state, deadlineAtMs, options.signal);
  }
}

/** @returns the error code of a plain connect, or undefined if it works. */
function probeSocket(path: string): Promise<string | undefined> {
  return new Promise((resolve) => {
    const socket = connectSocket(path);
    socket.once('connect', () => {
      socket.destroy();
      resolve(undefined);
    });
    socket.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? 'UNKNOWN'));
  });
}

/** Waits until the channel has left a state, the deadline has come or the signal fires. */
function stateChange(
  client: Client,
  state: connectivityState,
  deadlineAtMs: number,
  signal: AbortSignal | undefined,
): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      signal?.removeEventListener('abort', done);
      resolve();
    };
    signal?.addEventListener('abort', done, { once: true });
    if (client.getChannel().getConnectivityState(false) !== state) return done();
    client.getChannel().watchConnectivityState(state, deadlineAtMs, done);
  });
}

class GrpcUnixChannel implements UnixChannel {
  readonly #client: Client;
  readonly #resources: DisposableStack;
  readonly #running = new Set<ClientUnaryCall>();
  readonly #lossListeners = new Set<() => void>();

  constructor(client: Client, resources: DisposableStack) {
    this.#client = client;
    this.#resources = resources;
    this.#watch();
  }

  call(path: string, request: Uint8Array, options: RawCallOptions): Promise<RawResult> {
    if (this.#resources.disposed) return Promise.resolve(failed('closed', status.CANCELLED, CLOSING_TEXT));
    if (options.signal?.aborted) return Promise.resolve(failed('aborted', status.CANCELLED, ABORTED_TEXT));
    if (request.length > MAX_SEND_BYTES) {
      return Promise.resolve(failed('oversized', status.RESOURCE_EXHAUSTED, tooLargeText(request.length)));
    }
    return new Promise((resolve) => this.#start(path, request, options, resolve));
  }

  onLost(listener: () => void): Disposable {
    // A wrapper, so that one function subscribed twice is two subscriptions.
    const entry = (): void => listener();
    this.#lossListeners.add(entry);
    return { [Symbol.dispose]: () => void this.#lossListeners.delete(entry) };
  }

  [Symbol.dispose](): void {
    if (this.#resources.disposed) return;
    this.#lossListeners.clear();
    this.#resources.dispose();
    for (const call of this.#running) call.cancel();
  }

  #start(path: string, request: Uint8Array, options: RawCallOptions, resolve: (result: RawResult) => void): void {
    const { signal } = options;
    const abort = (): void => call.cancel();
    const call = this.#client.makeUnaryRequest(
      path,
      (bytes: Uint8Array) => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength),
      (bytes: Buffer) => bytes,
      request,
      new Metadata(),
      { deadline: Date.now() + options.timeoutMs },
      (error, bytes) => {
        this.#running.delete(call);
        signal?.removeEventListener('abort', abort);
        if (error === null && bytes !== undefined) return resolve({ ok: true, bytes });
        if (this.#resources.disposed) return resolve(failed('closed', status.CANCELLED, CLOSING_TEXT));
        if (signal?.aborted) return resolve(failed('aborted', status.CANCELLED, ABORTED_TEXT));
        resolve(failed('status', error?.code ?? status.UNKNOWN, error?.details ?? 'no answer'));
      },
    );
    this.#running.add(call);
    signal?.addEventListener('abort', abort, { once: true });
  }

  #watch(): void {
    const channel = this.#client.getChannel();
    const before = channel.getConnectivityState(false);
    channel.watchConnectivityState(before, Infinity, () => {
      if (this.#resources.disposed) return;
      const isLost = before === connectivityState.READY;
      this.#watch();
      if (isLost) for (const listener of [...this.#lossListeners]) listener();
    });
  }
}

const CLOSING_TEXT = 'grpc: the client connection is closing';
const ABORTED_TEXT = 'context canceled';

function failed(kind: CallFailure['kind'], code: number, details: string): RawResult {
  return { ok: false, failure: { kind, code, details } };
}
