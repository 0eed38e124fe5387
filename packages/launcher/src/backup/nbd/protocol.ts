import { LauncherError } from '../../errors.ts';

/** Numbers of the NBD protocol, as its document names them. */
export const NBD = {
  magic: 0x4e42444d41474943n,
  haveOption: 0x49484156454f5054n,
  optionReply: 0x0003e889045565a9n,
  request: 0x25609513,
  structuredReply: 0x668e33ef,
  simpleReply: 0x67446698,
  fixedNewstyle: 1,
  noZeroes: 2,
  option: { go: 7, structuredReply: 8, setMetaContext: 10 },
  reply: { ack: 1, info: 3, metaContext: 4, error: 0x80000000 },
  infoExport: 0,
  command: { read: 0, disconnect: 2, blockStatus: 7 },
  chunkDone: 1,
  chunk: { none: 0, offsetData: 1, offsetHole: 2, blockStatus: 5, error: 0x8000 },
} as const;

/** More than any chunk that was asked for has. */
const MAX_CHUNK_BYTES = 2 << 20;
/** Text of an error, names of contexts. */
const MAX_REPLY_BYTES = 64 << 10;

/** A failure of the peer or against it. */
export function nbdError(text: string): LauncherError {
  return new LauncherError('BackupFailed', `NBD server: ${text}`);
}

/** An option of the handshake. */
export function renderOption(option: number, data: Uint8Array): Buffer {
  const header = Buffer.alloc(16);
  header.writeBigUInt64BE(NBD.haveOption);
  header.writeUInt32BE(option, 8);
  header.writeUInt32BE(data.length, 12);
  return Buffer.concat([header, data]);
}

/** A text after its length. */
function renderText(text: string): Buffer {
  const bytes = Buffer.from(text);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(bytes.length);
  return Buffer.concat([length, bytes]);
}

/** Data of GO: the export, and no requests for more information. */
export function renderGo(exportName: string): Buffer {
  return Buffer.concat([renderText(exportName), Buffer.alloc(2)]);
}

/** Data of SET_META_CONTEXT. */
export function renderContexts(exportName: string, contexts: readonly string[]): Buffer {
  const count = Buffer.alloc(4);
  count.writeUInt32BE(contexts.length);
  return Buffer.concat([renderText(exportName), count, ...contexts.map(renderText)]);
}

/** Header of a reply to an option. */
export interface OptionReply {
  readonly option: number;
  readonly type: number;
  readonly bytes: number;
}

/** Size of the header of a reply to an option. */
export const OPTION_REPLY_BYTES = 20;

/** Reads the header of a reply to an option. @throws {LauncherError} `BackupFailed` */
export function parseOptionReply(header: Buffer): OptionReply {
  const bytes = header.readUInt32BE(16);
  if (header.readBigUInt64BE(0) !== NBD.optionReply || bytes > MAX_REPLY_BYTES) throw nbdError('broken option reply');
  return { option: header.readUInt32BE(8), type: header.readUInt32BE(12), bytes };
}

/** A request of the transmission phase. */
export interface NbdRequest {
  readonly command: number;
  readonly handle: bigint;
  readonly offset: bigint;
  readonly length: number;
}

/** Renders a request. */
export function renderRequest({ command, handle, offset, length }: NbdRequest): Buffer {
  const bytes = Buffer.alloc(28);
  bytes.writeUInt32BE(NBD.request, 0);
  bytes.writeUInt16BE(command, 6);
  bytes.writeBigUInt64BE(handle, 8);
  bytes.writeBigUInt64BE(offset, 16);
  bytes.writeUInt32BE(length, 24);
  return bytes;
}

/** Header of a chunk of a structured reply. */
export interface ChunkHeader {
  readonly isLast: boolean;
  readonly type: number;
  readonly bytes: number;
}

/** Size of the header of a chunk. */
export const CHUNK_HEADER_BYTES = 20;

/** Reads the header of a chunk. @throws {LauncherError} `BackupFailed` when it answers another request or is broken. */
export function parseChunkHeader(header: Buffer, handle: bigint): ChunkHeader {
  const bytes = header.readUInt32BE(16);
  const isWhole = header.readUInt32BE(0) === NBD.structuredReply && header.readBigUInt64BE(8) === handle;
  if (!isWhole || bytes > MAX_CHUNK_BYTES) throw nbdError('broken reply');
  return { isLast: (header.readUInt16BE(4) & NBD.chunkDone) !== 0, type: header.readUInt16BE(6), bytes };
}

/** Text of a chunk that tells an error. */
export function parseErrorChunk(payload: Buffer): string {
  if (payload.length < 6) return 'unknown error';
  const errno = payload.readUInt32BE(0);
  const text = payload.subarray(6, 6 + payload.readUInt16BE(4)).toString('utf8');
  return text === '' ? `error ${errno}` : text;
}

/** A run of bytes of one kind. */
export interface StatusRun {
  readonly length: bigint;
  readonly flags: number;
}

/** Reads a chunk of BLOCK_STATUS. @throws {LauncherError} `BackupFailed` */
export function parseStatusChunk(payload: Buffer): { readonly context: number; readonly runs: readonly StatusRun[] } {
  if (payload.length < 12 || payload.length % 8 !== 4) throw nbdError('broken block status');
  const runs: StatusRun[] = [];
  for (let at = 4; at < payload.length; at += 8) {
    runs.push({ length: BigInt(payload.readUInt32BE(at)), flags: payload.readUInt32BE(at + 4) });
  }
  return { context: payload.readUInt32BE(0), runs };
}
