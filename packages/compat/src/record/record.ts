import { appendFileSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Sender } from '../connection/frames.ts';
import { STATUS_NAMES } from '../connection/status-names.ts';
import { CompatError } from '../errors.ts';
import { MessageReader } from '../replay/recorded-json.ts';
import { maskMessage } from './mask.ts';
import { maskText } from './mask-json.ts';
import { maskHeader } from './masked-bytes.ts';
import { startTee } from './tee.ts';
import { type SeenCall, WatchedConnection } from './watched-connection.ts';

/** What a recording is about. */
export interface RecordOptions {
  /** The socket to make, for clients. */
  readonly listen: string;
  /** The socket of the server. */
  readonly to: string;
  /** An empty folder, or one that is not there yet. */
  readonly out: string;
  /** The release that is recorded, for the index. */
  readonly release: string;
}

/** A recorder that runs; disposing of it writes the index. */
export interface Recorder extends AsyncDisposable {
  /** Calls that were written. */
  readonly messages: number;
  readonly connections: number;
}

type Channel = 'cmd' | 'notify';

const MAX_MESSAGES = 100_000;
/** Connections beyond are passed on and not recorded byte by byte. */
const MAX_CONNECTIONS = 1_000;
const MAX_CONNECTION_BYTES = 64 * 1_048_576;
/** Frames before the first call: settings and their like. */
const MAX_EARLY_FRAMES = 64;
const PRIVATE = { mode: 0o600 };

const channelOf = (path: string): Channel => (path.startsWith('/kubevirt.notify') ? 'notify' : 'cmd');

/** What is written about one scenario. */
class Recording {
  readonly #options: RecordOptions;
  readonly #reader = new MessageReader();
  readonly #startedAtMs = performance.now();
  readonly #entries: { readonly seq: number; readonly file: string; readonly line: object }[] = [];
  readonly #timeline: object[] = [];
  readonly #channels = new Map<number, Channel>();
  readonly #early = new Map<number, readonly { readonly sender: Sender; readonly bytes: Buffer }[]>();
  /** Bytes in each file of a connection. */
  readonly #lengths = new Map<string, number>();
  #calls = 0;

  constructor(options: RecordOptions) {
    this.#options = options;
    prepare(options.out);
  }

  get messages(): number {
    return this.#entries.length;
  }

  /** The connection of a number, to be told of its bytes. */
  watch(connection: number): WatchedConnection {
    return new WatchedConnection(connection, {
      onCall: (path) => {
        this.#calls += 1;
        this.#name(connection, channelOf(path));
        const seq = this.#calls;
        return (call) => this.#write(seq, call);
      },
      onBytes: (sender, bytes) => this.#append(connection, sender, bytes),
      onFlaw: (sender, reason) => this.note({ kind: 'unreadable', connection, sender, reason: maskText(reason) }),
      maskMessage: (path, sender, message) => this.#mask(path, sender, message),
      maskText,
      nowMs: () => performance.now(),
    });
  }

  /** Adds a line to the timeline. */
  note(line: object): void {
    if (this.#timeline.length >= MAX_MESSAGES) return;
    this.#timeline.push({ atMs: Math.round(performance.now() - this.#startedAtMs), ...line });
  }

  finish(): void {
    const { release, out } = this.#options;
    const messages = this.#entries.toSorted((a, b) => a.seq - b.seq).map(({ file, line }) => ({ file, ...line }));
    const connections = [...this.#lengths.keys()].map((name) => `connections/${name}`);
    writeFileSync(join(out, 'index.json'), render({ release, scenario: 'recorded', connections, messages }), PRIVATE);
    writeFileSync(join(out, 'timeline.json'), render(this.#timeline), PRIVATE);
  }

  #mask(path: string, sender: Sender, message: Uint8Array): Uint8Array {
    const types = this.#reader.typesOf(path);
    const schema = types && this.#reader.schemaOf(sender === 'client' ? types.request : types.response);
    // Nobody can say what is in the messages of a method that no release has.
    return schema === undefined ? new Uint8Array() : maskMessage(schema, message);
  }

  #write(seq: number, call: SeenCall): void {
    const types = this.#reader.typesOf(call.path);
    if (this.messages >= MAX_MESSAGES) return;
    const rpc = maskText(call.path.slice(call.path.lastIndexOf('/') + 1)).replaceAll(/[^\w.-]/g, '_');
    const prefix = channelOf(call.path) === 'notify' ? 'notify-' : '';
    const file = `${String(seq).padStart(3, '0')}-${prefix}${rpc.slice(0, 64)}.json`;
    const message = this.#show(seq, call, types ?? { request: 'unknown', response: 'unknown' });
    writeFileSync(join(this.#options.out, file), render(message), PRIVATE);
    const atMs = Math.round(call.startedAtMs - this.#startedAtMs);
    this.#entries.push({ seq, file, line: { atMs, connection: call.connection } });
    this.note({ kind: 'call', channel: channelOf(call.path), connection: call.connection, file });
  }

  #show(seq: number, call: SeenCall, types: { readonly request: string; readonly response: string }): object {
    const { path, headers, request, answer, code, details } = call;
    const channel = channelOf(path);
    const metadata = headers
      .map(maskHeader)
      .filter(({ name }) => name === ':authority' || !/^:|^te$|^grpc-/.test(name));
    return {
      ...{ seq, release: this.#options.release, scenario: 'recorded', channel },
      ...{ caller: channel === 'cmd' ? 'handler' : 'launcher', method: path, connection: call.connection },
      atMs: Math.round(call.startedAtMs - this.#startedAtMs),
      durationMs: Math.round(call.endedAtMs - call.startedAtMs),
      requestMetadata: Object.fromEntries(metadata.map(({ name, value }) => [name, [value]])),
      request: this.#side(types.request, request),
      ...(code === 0 ? { response: this.#side(types.response, answer ?? new Uint8Array()) } : {}),
      grpcStatus: { code, message: details, name: STATUS_NAMES[code] ?? String(code) },
    };
  }

  #side(type: string, bytes: Uint8Array): object {
    return { type, base64: Buffer.from(bytes).toString('base64'), ...this.#reader.show(type, bytes) };
  }

  /** The first call of a connection says which channel it is; what came before is kept until then. */
  #name(connection: number, channel: Channel): void {
    if (this.#channels.has(connection)) return;
    this.#channels.set(connection, channel);
    const early = this.#early.get(connection) ?? [];
    this.#early.delete(connection);
    for (const { sender, bytes } of early) this.#append(connection, sender, bytes);
  }

  #append(connection: number, sender: Sender, bytes: Buffer): void {
    if (connection > MAX_CONNECTIONS) return;
    const channel = this.#channels.get(connection);
    if (channel === undefined) {
      const early = this.#early.get(connection) ?? [];
      if (early.length < MAX_EARLY_FRAMES) this.#early.set(connection, [...early, { sender, bytes }]);
      return;
    }
    const name = `${channel}-conn${connection}${sender === 'client' ? '' : '.server'}.bin`;
    const length = (this.#lengths.get(name) ?? 0) + bytes.length;
    if (length > MAX_CONNECTION_BYTES) return;
    this.#lengths.set(name, length);
    appendFileSync(join(this.#options.out, 'connections', name), bytes, PRIVATE);
  }
}

const render = (value: unknown): string => `${JSON.stringify(value, null, 1)}\n`;

function prepare(out: string): void {
  try {
    mkdirSync(join(out, 'connections'), { recursive: true, mode: 0o700 });
  } catch (caught) {
    throw new CompatError('BadOption', `${out} cannot be made: ${String(caught)}`, { cause: caught });
  }
  const old = [
    ...readdirSync(out).filter((name) => name !== 'connections'),
    ...readdirSync(join(out, 'connections')),
  ][0];
  if (old !== undefined) throw new CompatError('BadOption', `${out} holds ${old}: name an empty folder`);
}

/**
 * Stands between a live handler and a live launcher and writes what they say in the format of KubeVirt captures, with
 * secrets masked before anything reaches the disk. Every byte is passed on unchanged, also what cannot be read. Works on
 * a cmd socket and on a notify socket alike.
 *
 * @throws {CompatError} `ServeFailed`; `BadOption` for a folder that is not empty.
 */
export async function startRecorder(options: RecordOptions): Promise<Recorder> {
  const recording = new Recording(options);
  const open = new Map<number, WatchedConnection>();
  let connections = 0;
  const tee = await startTee(options.listen, options.to, {
    onConnect: (connection) => {
      connections = connection;
      open.set(connection, recording.watch(connection));
      recording.note({ kind: 'connect', connection });
    },
    onBytes: (connection, sender, bytes) => open.get(connection)?.push(sender, bytes),
    onDisconnect: (connection) => {
      open.get(connection)?.end();
      open.delete(connection);
      recording.note({ kind: 'disconnect', connection });
    },
  });
  return {
    get messages() {
      return recording.messages;
    },
    get connections() {
      return connections;
    },
    async [Symbol.asyncDispose]() {
      await tee[Symbol.asyncDispose]();
      for (const connection of open.values()) connection.end();
      recording.finish();
    },
  };
}
