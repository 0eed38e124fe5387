import { CLIENT_PREFACE, FRAME_HEADER_BYTES, type FrameHeader, parseFrameHeader } from '@virtwire/shared-proto/http2';
import { CompatError } from '../errors.ts';

/** A frame of HTTP/2. */
export interface Frame extends FrameHeader {
  readonly payload: Buffer;
  /** Header and payload, as they were sent. */
  readonly raw: Buffer;
}

/** Which side of a connection sent the bytes. */
export type Sender = 'client' | 'server';

/** Types of frames that are looked into. @source RFC 9113 section 6 */
export const FRAME = { data: 0, headers: 1, priority: 2, reset: 3, settings: 4, ping: 6, goAway: 7, continuation: 9 };

/** Names as captures print them, by type. */
const NAMES = ['DATA', 'HEADERS', 'PRIORITY', 'RST_STREAM', 'SETTINGS', 'PUSH_PROMISE', 'PING', 'GOAWAY'].concat([
  'WINDOW_UPDATE',
  'CONTINUATION',
]);

/** Peers that say nothing else send at most 16 KiB; nobody on this wire asks for more. */
const MAX_FRAME_BYTES = 1_048_576;

/** The name of a frame's type. */
export const frameName = (type: number): string => NAMES[type] ?? `type ${type}`;

/** Cuts the bytes of one direction of a connection into frames. Keeps less than one frame. */
export class FrameReader {
  #rest: Buffer = Buffer.alloc(0);
  #needsPreface: boolean;
  #offset = 0;

  constructor(sender: Sender) {
    this.#needsPreface = sender === 'client';
  }

  /** Bytes of a frame that is not complete yet. */
  get pendingBytes(): number {
    return this.#rest.length;
  }

  /** Whether the client's preface is still to come. */
  get isAtStart(): boolean {
    return this.#needsPreface;
  }

  /** @throws {CompatError} `DecodeFailed` for bytes that are no HTTP/2, with the place. */
  push(chunk: Buffer): readonly Frame[] {
    this.#rest = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    if (this.#needsPreface && !this.#readPreface()) return [];
    const frames: Frame[] = [];
    for (let frame = this.#next(); frame !== undefined; frame = this.#next()) frames.push(frame);
    return frames;
  }

  #readPreface(): boolean {
    const expected = CLIENT_PREFACE.subarray(0, this.#rest.length);
    if (!this.#rest.subarray(0, CLIENT_PREFACE.length).equals(expected)) {
      throw new CompatError('DecodeFailed', 'byte 0: it does not begin as HTTP/2 does');
    }
    if (this.#rest.length < CLIENT_PREFACE.length) return false;
    this.#needsPreface = false;
    this.#take(CLIENT_PREFACE.length);
    return true;
  }

  #next(): Frame | undefined {
    if (this.#rest.length < FRAME_HEADER_BYTES) return undefined;
    const header = parseFrameHeader(this.#rest);
    if (header.length > MAX_FRAME_BYTES) {
      throw new CompatError('DecodeFailed', `byte ${this.#offset}: a frame of ${header.length} bytes`);
    }
    const length = FRAME_HEADER_BYTES + header.length;
    if (this.#rest.length < length) return undefined;
    const raw = this.#take(length);
    return { ...header, raw, payload: raw.subarray(FRAME_HEADER_BYTES) };
  }

  #take(length: number): Buffer {
    const taken = this.#rest.subarray(0, length);
    this.#rest = this.#rest.subarray(length);
    this.#offset += length;
    return taken;
  }
}

/** A frame like another one, with another payload. */
export function renderFrame({ type, flags, streamId }: FrameHeader, payload: Uint8Array): Buffer {
  const header = Buffer.alloc(FRAME_HEADER_BYTES);
  header.writeUIntBE(payload.length, 0, 3);
  header.writeUInt8(type, 3);
  header.writeUInt8(flags, 4);
  header.writeUInt32BE(streamId, 5);
  return Buffer.concat([header, payload]);
}

const END_STREAM = 0x1;
const MAX_DATA_BYTES = 16_384;

/** DATA frames with these bytes. `ends` marks the last one as the end of its stream. */
export function renderDataFrames(streamId: number, bytes: Uint8Array, ends: boolean): Buffer {
  const parts: Buffer[] = [];
  for (let at = 0; at === 0 || at < bytes.length; at += MAX_DATA_BYTES) {
    const payload = bytes.subarray(at, at + MAX_DATA_BYTES);
    const flags = ends && at + MAX_DATA_BYTES >= bytes.length ? END_STREAM : 0;
    parts.push(renderFrame({ type: FRAME.data, flags, streamId, length: payload.length }, payload));
  }
  return Buffer.concat(parts);
}
