import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { LauncherError } from '../../errors.ts';
import type { ByteReader } from './byte-reader.ts';
import { createByteReader } from './byte-reader.ts';
import type { StatusRun } from './protocol.ts';
import {
  CHUNK_HEADER_BYTES,
  NBD,
  nbdError,
  OPTION_REPLY_BYTES,
  parseChunkHeader,
  parseErrorChunk,
  parseOptionReply,
  parseStatusChunk,
  renderContexts,
  renderGo,
  renderOption,
  renderRequest,
} from './protocol.ts';

/** A server that says nothing for so long is given up. */
const SILENCE_LIMIT_MS = 60_000;
/** What one request for block status may cover. */
const MAX_STATUS_BYTES = 1n << 30n;

/** An export of an NBD server, opened. */
export interface NbdExport extends Disposable {
  /** Bytes. */
  readonly size: bigint;
  /** @throws {LauncherError} `BackupFailed` */
  read(offset: bigint, length: number): Promise<Buffer>;
  /**
   * What is where, by context, from the offset on; each may tell of less than was asked for, or a little more.
   *
   * @throws {LauncherError} `BackupFailed`
   */
  blockStatus(offset: bigint, length: bigint): Promise<ReadonlyMap<string, readonly StatusRun[]>>;
}

async function dial(socketPath: string, signal: AbortSignal): Promise<Socket> {
  const socket = connect({ path: socketPath, signal });
  try {
    await new Promise<void>((resolve, reject) => {
      socket.once('connect', resolve);
      socket.once('error', reject);
    });
  } catch (caught) {
    throw LauncherError.from(caught, 'BackupFailed', `failed to connect to ${socketPath}: `);
  }
  socket.setTimeout(SILENCE_LIMIT_MS, () => socket.destroy(new Error('no answer')));
  return socket;
}

/**
 * Opens an export, with those contexts of block status.
 *
 * @param signal ends the connection.
 * @throws {LauncherError} `BackupFailed`, also when a context is not to be had.
 */
export async function openNbdExport(
  socketPath: string,
  exportName: string,
  contexts: readonly string[],
  signal: AbortSignal,
): Promise<NbdExport> {
  const socket = await dial(socketPath, signal);
  const client = new NbdClient(socket);
  try {
    await client.open(exportName, contexts);
    return client;
  } catch (caught) {
    socket.destroy();
    throw caught;
  }
}

/** One request at a time. `@source the NBD protocol, doc/proto.md of NetworkBlockDevice/nbd` */
class NbdClient implements NbdExport {
  readonly #socket: Socket;
  readonly #reader: ByteReader;
  readonly #contexts = new Map<number, string>();
  #handle = 0n;
  size = 0n;

  constructor(socket: Socket) {
    this.#socket = socket;
    this.#reader = createByteReader(socket);
  }

  async open(exportName: string, contexts: readonly string[]): Promise<void> {
    const greeting = await this.#reader.take(18);
    const isNewstyle = greeting.readBigUInt64BE(0) === NBD.magic && greeting.readBigUInt64BE(8) === NBD.haveOption;
    if (!isNewstyle || (greeting.readUInt16BE(16) & NBD.fixedNewstyle) === 0) throw nbdError('no NBD of today');
    const flags = Buffer.alloc(4);
    flags.writeUInt32BE(NBD.fixedNewstyle | NBD.noZeroes);
    this.#socket.write(flags);
    await this.#ask(NBD.option.structuredReply, Buffer.alloc(0), () => undefined);
    if (contexts.length > 0) await this.#chooseContexts(exportName, contexts);
    await this.#ask(NBD.option.go, renderGo(exportName), (type, data) => {
      if (type === NBD.reply.info && data.length >= 10 && data.readUInt16BE(0) === NBD.infoExport) {
        this.size = data.readBigUInt64BE(2);
      }
    });
  }

  async #chooseContexts(exportName: string, contexts: readonly string[]): Promise<void> {
    await this.#ask(NBD.option.setMetaContext, renderContexts(exportName, contexts), (type, data) => {
      if (type !== NBD.reply.metaContext || data.length < 4) return;
      this.#contexts.set(data.readUInt32BE(0), data.subarray(4).toString('utf8'));
    });
    const known = new Set(this.#contexts.values());
    const missing = contexts.find((context) => !known.has(context));
    if (missing === undefined) return;
    throw new LauncherError('BackupFailed', `server does not support requested context: ${missing}`);
  }

  /** Sends an option and takes its replies up to the acknowledgement. */
  async #ask(option: number, data: Uint8Array, onReply: (type: number, data: Buffer) => void): Promise<void> {
    this.#socket.write(renderOption(option, data));
    for (;;) {
      const reply = parseOptionReply(await this.#reader.take(OPTION_REPLY_BYTES));
      const content = await this.#reader.take(reply.bytes);
      if (reply.option !== option) throw nbdError('reply to another option');
      if (reply.type === NBD.reply.ack) return;
      if (reply.type >= NBD.reply.error) throw nbdError(content.toString('utf8') || `option ${option} refused`);
      onReply(reply.type, content);
    }
  }

  async read(offset: bigint, length: number): Promise<Buffer> {
    const data = Buffer.alloc(length);
    let filled = 0;
    await this.#request(NBD.command.read, offset, length, (type, payload) => {
      const at = payload.length < 8 ? -1 : Number(payload.readBigUInt64BE(0) - offset);
      const isHole = type === NBD.chunk.offsetHole && payload.length === 12;
      if (!isHole && type !== NBD.chunk.offsetData) throw nbdError('unexpected chunk');
      const bytes = isHole ? payload.readUInt32BE(8) : payload.length - 8;
      if (at < 0 || at + bytes > length) throw nbdError('data outside of what was asked for');
      if (!isHole) payload.copy(data, at, 8);
      filled += bytes;
    });
    if (filled !== length) throw nbdError('incomplete data');
    return data;
  }

  async blockStatus(offset: bigint, length: bigint): Promise<ReadonlyMap<string, readonly StatusRun[]>> {
    const status = new Map<string, readonly StatusRun[]>();
    const covered = length > MAX_STATUS_BYTES ? MAX_STATUS_BYTES : length;
    await this.#request(NBD.command.blockStatus, offset, Number(covered), (type, payload) => {
      if (type !== NBD.chunk.blockStatus) throw nbdError('unexpected chunk');
      const { context, runs } = parseStatusChunk(payload);
      status.set(this.#contexts.get(context) ?? '', runs);
    });
    return status;
  }

  async #request(
    command: number,
    offset: bigint,
    length: number,
    onChunk: (type: number, payload: Buffer) => void,
  ): Promise<void> {
    const handle = ++this.#handle;
    this.#socket.write(renderRequest({ command, handle, offset, length }));
    let failure: string | undefined;
    for (;;) {
      const { isLast, type, bytes } = parseChunkHeader(await this.#reader.take(CHUNK_HEADER_BYTES), handle);
      const payload = await this.#reader.take(bytes);
      if (type >= NBD.chunk.error) failure ??= parseErrorChunk(payload);
      else if (type !== NBD.chunk.none) onChunk(type, payload);
      if (isLast) break;
    }
    if (failure !== undefined) throw nbdError(failure);
  }

  [Symbol.dispose](): void {
    const { disconnect: command } = NBD.command;
    this.#socket.end(renderRequest({ command, handle: 0n, offset: 0n, length: 0 }));
  }
}
