import { endsHeaders, type Header, HpackDecoder, parseHeadersPayload } from '@virtwire/shared-proto/http2';
import { CompatError } from '../errors.ts';
import { FRAME, type Frame, frameName, FrameReader, type Sender } from './frames.ts';

/** What happens in one direction of a connection, in its order. */
export type ConnectionEvent =
  /** A whole header block. */
  | {
      readonly kind: 'headers';
      readonly streamId: number;
      readonly headers: readonly Header[];
      readonly ends: boolean;
      /** The frames that it came in; the first is a HEADERS frame. */
      readonly frames: readonly Frame[];
    }
  /** A piece of a stream's content. */
  | { readonly kind: 'data'; readonly streamId: number; readonly bytes: Buffer; readonly ends: boolean }
  /** The stream was broken off. */
  | { readonly kind: 'reset'; readonly streamId: number; readonly frame: Frame }
  /** A frame without a meaning for calls. */
  | { readonly kind: 'other'; readonly frame: Frame };

const END_STREAM = 0x1;
const PADDED = 0x8;
const MAX_LIST_BYTES = 65_536;
const MAX_BLOCK_BYTES = 65_536;

/** Reads one direction of a connection of HTTP/2. Keeps the header table and less than one frame. */
export class StreamReader {
  readonly #frames: FrameReader;
  readonly #hpack = new HpackDecoder(MAX_LIST_BYTES);
  /** HEADERS and CONTINUATION frames of a block that has not ended. */
  #block: Frame[] = [];

  constructor(sender: Sender) {
    this.#frames = new FrameReader(sender);
  }

  /** What is left over when the connection has ended: undefined when it ended between two frames. */
  get incomplete(): string | undefined {
    if (this.#block.length > 0) return 'it ends within a header block';
    if (this.#frames.isAtStart) return 'it ends before the first frame';
    return this.#frames.pendingBytes > 0
      ? `it ends within a frame, with ${this.#frames.pendingBytes} bytes`
      : undefined;
  }

  /** @throws {CompatError} `DecodeFailed` for bytes that break the rules of HTTP/2. */
  push(chunk: Buffer): readonly ConnectionEvent[] {
    return this.#frames.push(chunk).flatMap((frame) => this.#take(frame));
  }

  #take(frame: Frame): readonly ConnectionEvent[] {
    const { type, streamId } = frame;
    if (this.#block.length > 0 || type === FRAME.headers) return this.#header(frame);
    if (type === FRAME.data) return [{ kind: 'data', streamId, bytes: contentOf(frame), ends: endsStream(frame) }];
    if (type === FRAME.reset) return [{ kind: 'reset', streamId, frame }];
    if (type === FRAME.continuation) throw new CompatError('DecodeFailed', 'a CONTINUATION frame without HEADERS');
    return [{ kind: 'other', frame }];
  }

  #header(frame: Frame): readonly ConnectionEvent[] {
    const [first] = this.#block;
    const isNext = frame.type === FRAME.continuation && frame.streamId === first?.streamId;
    if (first !== undefined && !isNext) {
      throw new CompatError('DecodeFailed', `a ${frameName(frame.type)} frame within a header block`);
    }
    this.#block.push(frame);
    const bytes = this.#block.reduce((sum, { length }) => sum + length, 0);
    if (bytes > MAX_BLOCK_BYTES)
      throw new CompatError('DecodeFailed', `a header block of over ${MAX_BLOCK_BYTES} bytes`);
    if (!endsHeaders(frame)) return [];
    const frames = this.#block;
    this.#block = [];
    const headers = this.#decode(frames);
    const { streamId } = frame;
    return [{ kind: 'headers', streamId, headers, ends: frames.some(endsStream), frames }];
  }

  #decode(frames: readonly Frame[]): readonly Header[] {
    const fragments = frames.map((frame) => {
      if (frame.type !== FRAME.headers) return frame.payload;
      const parts = parseHeadersPayload(frame, frame.payload);
      if (parts === undefined) throw new CompatError('DecodeFailed', 'a HEADERS frame is shorter than its padding');
      return parts.fragment;
    });
    try {
      return this.#hpack.decode(Buffer.concat(fragments));
    } catch (caught) {
      throw new CompatError('DecodeFailed', `a header block: ${String(caught)}`, { cause: caught });
    }
  }
}

function endsStream({ type, flags }: Frame): boolean {
  return (type === FRAME.data || type === FRAME.headers) && (flags & END_STREAM) !== 0;
}

function contentOf({ flags, payload }: Frame): Buffer {
  if ((flags & PADDED) === 0) return payload;
  const padding = payload[0] ?? 0;
  if (padding >= payload.length) throw new CompatError('DecodeFailed', 'a DATA frame is shorter than its padding');
  return payload.subarray(1, payload.length - padding);
}

/** The value of a header; undefined without it. */
export function headerValue(headers: readonly Header[], name: string): string | undefined {
  return headers.find((header) => header.name === name)?.value;
}
