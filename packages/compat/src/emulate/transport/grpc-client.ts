import { type ClientHttp2Session, type ClientHttp2Stream, connect as connectHttp2, constants } from 'node:http2';
import { connect as connectSocket, type Socket } from 'node:net';

import { fitSocketPath } from '@virtwire/shared-proto';

import { CompatError } from '../../errors.ts';
import { decodeStatusText, GRPC, MessageReader, renderFrame, renderTimeout } from './grpc-frames.ts';

/** How a call ended. `bytes` only with code 0. */
export interface RawAnswer {
  readonly code: number;
  readonly details: string;
  readonly bytes: Uint8Array;
}

/** What a client of a release sends beside its messages. */
export interface ClientHabit {
  /** With a slash before v1.1, which neither grpc-js nor a Node server can bear: hence the own client. */
  readonly authority: string;
  readonly userAgent: string;
}

/** A connection of its own to a gRPC server, as a grpc-go client makes it. */
export interface GrpcConnection extends Disposable {
  readonly isOpen: boolean;
  readonly authority: string;
  /** Never rejects. */
  call(path: string, request: Uint8Array, timeoutMs: number): Promise<RawAnswer>;
}

/** Limit of a blocking dial. @source releases.json eras dialOptions */
const DIAL_TIMEOUT_MS = 2_000;

/**
 * Connects to a unix socket and waits for the server's settings.
 *
 * @throws {CompatError} `ConnectFailed`, with grpc-go's text.
 */
export async function dialGrpc(
  socketPath: string,
  habit: ClientHabit,
  timeoutMs = DIAL_TIMEOUT_MS,
): Promise<GrpcConnection> {
  const socket = openSocket(socketPath);
  const session = connectHttp2('http://localhost', { createConnection: () => socket });
  const connection = new Connection(session, habit);
  session.on('error', () => undefined);
  const isReady = await new Promise<boolean>((resolve) => {
    const timer = setTimeout(() => resolve(false), timeoutMs);
    const end = (ready: boolean): void => {
      clearTimeout(timer);
      resolve(ready);
    };
    session.once('remoteSettings', () => end(true));
    session.once('close', () => end(false));
  });
  if (isReady) return connection;
  connection[Symbol.dispose]();
  throw new CompatError('ConnectFailed', 'context deadline exceeded');
}

function openSocket(socketPath: string): Socket {
  try {
    const fitted = fitSocketPath(socketPath);
    const socket = connectSocket(fitted.path);
    socket.once('close', () => fitted[Symbol.dispose]());
    return socket;
  } catch (caught) {
    throw new CompatError('ConnectFailed', 'context deadline exceeded', { cause: caught });
  }
}

/** Connects and closes without a byte, as handlers do to see whether a launcher lives. */
export async function knock(socketPath: string): Promise<boolean> {
  using fitted = fitSocketPath(socketPath);
  return await new Promise((resolve) => {
    const socket = connectSocket(fitted.path);
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}

class Connection implements GrpcConnection {
  readonly #session: ClientHttp2Session;
  readonly #habit: ClientHabit;

  constructor(session: ClientHttp2Session, habit: ClientHabit) {
    this.#session = session;
    this.#habit = habit;
  }

  get isOpen(): boolean {
    return !this.#session.closed && !this.#session.destroyed;
  }

  get authority(): string {
    return this.#habit.authority;
  }

  call(path: string, request: Uint8Array, timeoutMs: number): Promise<RawAnswer> {
    if (!this.isOpen)
      return Promise.resolve(failure(GRPC.unavailable, 'connection error: desc = "transport is closing"'));
    // In the order in which grpc-go writes them (captures, connections/*.frames.json).
    const stream = this.#session.request({
      ':method': 'POST',
      ':scheme': 'http',
      ':path': path,
      ':authority': this.#habit.authority,
      'content-type': 'application/grpc',
      'user-agent': this.#habit.userAgent,
      te: 'trailers',
      'grpc-timeout': renderTimeout(timeoutMs),
    });
    stream.end(renderFrame(request));
    return readAnswer(stream, timeoutMs);
  }

  [Symbol.dispose](): void {
    this.#session.destroy();
  }
}

function failure(code: number, details: string): RawAnswer {
  return { code, details, bytes: new Uint8Array() };
}

function readAnswer(stream: ClientHttp2Stream, timeoutMs: number): Promise<RawAnswer> {
  const reader = new MessageReader();
  let status: { readonly code: number; readonly details: string } | undefined;
  const takeStatus = (headers: Readonly<Record<string, unknown>>): void => {
    const code = headers['grpc-status'];
    if (typeof code !== 'string') return;
    const text = headers['grpc-message'];
    status = { code: Number(code), details: typeof text === 'string' ? decodeStatusText(text) : '' };
  };
  return new Promise((resolve) => {
    const timer = setTimeout(() => {
      resolve(failure(GRPC.deadlineExceeded, 'context deadline exceeded'));
      stream.close(constants.NGHTTP2_CANCEL);
    }, timeoutMs);
    stream.on('response', takeStatus);
    stream.on('trailers', takeStatus);
    stream.on('data', (chunk: Buffer) => void reader.push(chunk));
    stream.on('error', () => undefined);
    stream.once('close', () => {
      clearTimeout(timer);
      resolve(conclude(status, reader, stream.rstCode));
    });
  });
}

/** The words are grpc-go's; handlers pass them on into conditions and events. */
function conclude(
  status: { readonly code: number; readonly details: string } | undefined,
  reader: MessageReader,
  resetCode: number | undefined,
): RawAnswer {
  if (status === undefined) {
    if (resetCode === constants.NGHTTP2_PROTOCOL_ERROR) {
      const text = 'stream terminated by RST_STREAM with error code: PROTOCOL_ERROR';
      return failure(GRPC.internal, text);
    }
    return failure(GRPC.unavailable, 'error reading from server: EOF');
  }
  if (status.code !== GRPC.ok) return failure(status.code, status.details);
  const message = reader.read();
  if (message.kind === 'tooLarge') {
    const text = `grpc: received message larger than max (${message.length} vs. 4194304)`;
    return failure(GRPC.resourceExhausted, text);
  }
  if (message.kind === 'incomplete') return failure(GRPC.internal, 'grpc: unexpected end of the answer');
  return { code: GRPC.ok, details: '', bytes: message.bytes };
}
