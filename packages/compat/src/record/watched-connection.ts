import type { Header } from '@virtwire/shared-proto/http2';
import type { Sender } from '../connection/frames.ts';
import { MessageSplitter } from '../connection/message-splitter.ts';
import { type ConnectionEvent, headerValue, StreamReader } from '../connection/stream-reader.ts';
import { MaskedBytes } from './masked-bytes.ts';

/** A call that was seen on a connection. Messages are masked. */
export interface SeenCall {
  readonly connection: number;
  readonly path: string;
  readonly headers: readonly Header[];
  readonly request: Uint8Array;
  readonly answer: Uint8Array | undefined;
  /** gRPC's code and text; code 1 when the call was broken off, 14 when the connection was. */
  readonly code: number;
  readonly details: string;
  /** Milliseconds since some moment. */
  readonly startedAtMs: number;
  readonly endedAtMs: number;
}

/** What a watched connection tells. */
export interface ConnectionWatcher {
  /** A call began; its place in the order of all calls is fixed now. Returns what is told when it has ended. */
  readonly onCall: (path: string) => (call: SeenCall) => void;
  /** Bytes for the disk, masked. */
  readonly onBytes: (sender: Sender, bytes: Buffer) => void;
  /** A direction cannot be read, and is not recorded from here on. */
  readonly onFlaw: (sender: Sender, reason: string) => void;
  readonly maskMessage: (path: string, sender: Sender, message: Uint8Array) => Uint8Array;
  readonly maskText: (text: string) => string;
  readonly nowMs: () => number;
}

interface Stream {
  readonly path: string;
  readonly headers: readonly Header[];
  readonly startedAtMs: number;
  readonly splitters: Readonly<Record<Sender, MessageSplitter>>;
  readonly finish: (call: SeenCall) => void;
  request: Uint8Array | undefined;
  answer: Uint8Array | undefined;
  status: { readonly code: number; readonly details: string } | undefined;
}

const CANCELED = 1;
const UNAVAILABLE = 14;
/** Peers open a hundred streams at most. */
const MAX_STREAMS = 1_024;

/** Reads both directions of a connection while it runs. Keeps the messages of calls that have not ended. */
export class WatchedConnection {
  readonly #number: number;
  readonly #watcher: ConnectionWatcher;
  readonly #readers: Readonly<Record<Sender, StreamReader>>;
  readonly #masked: Readonly<Record<Sender, MaskedBytes>>;
  readonly #streams = new Map<number, Stream>();
  readonly #flawed = new Set<Sender>();

  constructor(number: number, watcher: ConnectionWatcher) {
    this.#number = number;
    this.#watcher = watcher;
    this.#readers = { client: new StreamReader('client'), server: new StreamReader('server') };
    this.#masked = { client: new MaskedBytes('client'), server: new MaskedBytes('server') };
  }

  /** Takes bytes that passed. Never throws: what cannot be read is told as a flaw. */
  push(sender: Sender, chunk: Buffer): void {
    if (this.#flawed.has(sender)) return;
    this.#guard(sender, () => {
      for (const event of this.#readers[sender].push(chunk)) this.#take(sender, event);
    });
  }

  /** The connection has ended, and with it all its calls. */
  end(): void {
    this.#guard('server', () => {
      for (const streamId of [...this.#streams.keys()]) this.#finish(streamId, UNAVAILABLE, 'the connection ended');
    });
  }

  #guard(sender: Sender, run: () => void): void {
    try {
      run();
    } catch (caught) {
      this.#flawed.add(sender);
      this.#watcher.onFlaw(sender, caught instanceof Error ? caught.message : String(caught));
    }
  }

  #take(sender: Sender, event: ConnectionEvent): void {
    if (event.kind === 'data') {
      this.#data(sender, event);
      return;
    }
    if (event.kind === 'headers') this.#headers(sender, event);
    this.#watcher.onBytes(sender, this.#masked[sender].ofEvent(event));
    if (event.kind === 'reset') this.#finish(event.streamId, CANCELED, 'the call was broken off');
    else if (event.kind === 'headers' && sender === 'server' && event.ends) this.#end(event.streamId);
  }

  #headers(sender: Sender, { streamId, headers }: Extract<ConnectionEvent, { readonly kind: 'headers' }>): void {
    const stream = this.#streams.get(streamId);
    if (sender === 'client') {
      if (stream === undefined) this.#open(streamId, headers);
      return;
    }
    const code = headerValue(headers, 'grpc-status');
    if (stream === undefined || code === undefined) return;
    const details = decodeText(headerValue(headers, 'grpc-message') ?? '');
    stream.status = { code: Number(code), details: this.#watcher.maskText(details) };
  }

  #open(streamId: number, headers: readonly Header[]): void {
    if (this.#streams.size >= MAX_STREAMS) throw new Error(`over ${MAX_STREAMS} calls at once`);
    this.#streams.set(streamId, {
      ...{ path: headerValue(headers, ':path') ?? '', headers, startedAtMs: this.#watcher.nowMs() },
      splitters: { client: new MessageSplitter(), server: new MessageSplitter() },
      finish: this.#watcher.onCall(headerValue(headers, ':path') ?? ''),
      ...{ request: undefined, answer: undefined, status: undefined },
    });
  }

  #data(sender: Sender, { streamId, bytes, ends }: Extract<ConnectionEvent, { readonly kind: 'data' }>): void {
    const stream = this.#streams.get(streamId);
    // Of a call that was broken off: nobody reads it.
    if (stream === undefined) return;
    const whole = stream.splitters[sender].push(bytes);
    const messages = whole.map((message) => this.#watcher.maskMessage(stream.path, sender, message));
    const [first] = messages;
    if (sender === 'client') stream.request ??= first;
    else stream.answer ??= first;
    this.#watcher.onBytes(sender, this.#masked[sender].ofMessages(streamId, messages, ends));
    if (sender === 'server' && ends) this.#end(streamId);
  }

  #end(streamId: number): void {
    const { code, details } = this.#streams.get(streamId)?.status ?? { code: UNAVAILABLE, details: 'no status came' };
    this.#finish(streamId, code, details);
  }

  #finish(streamId: number, code: number, details: string): void {
    const stream = this.#streams.get(streamId);
    if (stream === undefined) return;
    this.#streams.delete(streamId);
    const { path, headers, startedAtMs, request = new Uint8Array(), answer } = stream;
    stream.finish({
      ...{ connection: this.#number, path, headers, request, answer, code, details },
      ...{ startedAtMs, endedAtMs: this.#watcher.nowMs() },
    });
  }
}

/** The text of a `grpc-message`; as it stands if it is badly encoded. */
function decodeText(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
