import { hasValidAuthority, isRequest, replaceAuthority } from './authority.ts';
import * as frames from './frames.ts';
import { encodeLiterals, type Header, HpackDecoder } from './hpack.ts';
import { HpackError } from './hpack-error.ts';

/** Limit of a header block, as sent and as decoded (FM-13.7). A block beyond it ends the connection. */
export const MAX_HEADER_BLOCK_BYTES = 65_536;

/** Thrown for a connection that has to be closed; internal. */
export class HeaderLimitError extends Error {
  override readonly name = 'HeaderLimitError';
}

interface OpenBlock {
  readonly frame: frames.FrameHeader;
  readonly priority: Buffer;
  /** The frames as they came, to be passed on if nothing has to change. */
  readonly raw: Buffer[];
  readonly fragments: Buffer[];
  bytes: number;
}

type Mode = 'preface' | 'watching' | 'rewriting' | 'transparent';
const NOTHING = Buffer.alloc(0);

/**
 * Makes the requests of a peer that sends the socket's path as its authority acceptable to Node's HTTP/2 server.
 *
 * Bytes from the client go in, bytes for the server come out. It looks at a connection until the first request: with
 * a good authority it steps aside for good. Else every header block is decoded and written anew from plain literals,
 * with `localhost` for an authority; since literals touch no table, both ends stay in step. Bytes that are not
 * HTTP/2, or break HPACK, are passed on as they are: refusing them is the server's business.
 *
 * @source KubeVirt before v1.1.0 dials unix sockets without an authority; grpc-go then sends the path
 */
export class AuthorityFilter {
  #mode: Mode = 'preface';
  /** Bytes of an unfinished preface, frame header or header frame. */
  #pending: Buffer = NOTHING;
  /** Payload bytes of the current frame that are still to be passed on. */
  #passing = 0;
  #block: OpenBlock | undefined;
  readonly #decoder = new HpackDecoder(MAX_HEADER_BLOCK_BYTES);

  /** True once the filter has stepped aside: what comes is passed on unseen. */
  get isTransparent(): boolean {
    return this.#mode === 'transparent';
  }

  /**
   * @returns what to hand to the server, in order.
   * @throws {HeaderLimitError} if a header block is over the limit; the connection is to be closed.
   */
  push(chunk: Buffer): readonly Buffer[] {
    if (this.#mode === 'transparent') return [chunk];
    const out: Buffer[] = [];
    let rest = this.#pending.length === 0 ? chunk : Buffer.concat([this.#pending, chunk]);
    this.#pending = NOTHING;
    for (let used = 1; used > 0 && rest.length > 0; rest = rest.subarray(used)) used = this.#step(rest, out);
    if (this.isTransparent) out.push(rest);
    else this.#pending = rest;
    return out;
  }

  /** @returns what was held back when the client has ended its side. */
  end(): readonly Buffer[] {
    const out: Buffer[] = [];
    this.#stepAside(out);
    if (this.#pending.length > 0) out.push(this.#pending);
    this.#pending = NOTHING;
    return out;
  }

  /** @returns how many bytes it has dealt with; 0 if it needs more, or deals with no more at all. */
  #step(bytes: Buffer, out: Buffer[]): number {
    if (this.isTransparent) return 0;
    if (this.#mode === 'preface') return this.#readPreface(bytes, out);
    if (this.#passing > 0) {
      const part = bytes.subarray(0, this.#passing);
      this.#passing -= part.length;
      out.push(part);
      return part.length;
    }
    return this.#readFrame(bytes, out);
  }

  #readPreface(bytes: Buffer, out: Buffer[]): number {
    const length = Math.min(bytes.length, frames.CLIENT_PREFACE.length);
    if (!bytes.subarray(0, length).equals(frames.CLIENT_PREFACE.subarray(0, length))) {
      this.#stepAside(out);
      return 0;
    }
    if (length < frames.CLIENT_PREFACE.length) return 0;
    this.#mode = 'watching';
    out.push(bytes.subarray(0, length));
    return length;
  }

  #readFrame(bytes: Buffer, out: Buffer[]): number {
    if (bytes.length < frames.FRAME_HEADER_BYTES) return 0;
    const frame = frames.parseFrameHeader(bytes);
    const isHeaders = frame.type === frames.HEADERS && this.#block === undefined;
    const isContinuation = frame.type === frames.CONTINUATION && this.#block?.frame.streamId === frame.streamId;
    if (!isHeaders && !isContinuation) return this.#passFrame(frame, bytes, out);
    const total = frames.FRAME_HEADER_BYTES + frame.length;
    if (frame.length > frames.MAX_FRAME_BYTES) return this.#giveUp(out);
    if (bytes.length < total) return 0;
    const raw = bytes.subarray(0, total);
    if (isHeaders && !this.#openBlock(frame, raw)) return this.#giveUp(out);
    if (isContinuation) this.#extendBlock(raw, raw.subarray(frames.FRAME_HEADER_BYTES));
    if (frames.endsHeaders(frame)) this.#closeBlock(out);
    return total;
  }

  #passFrame(frame: frames.FrameHeader, bytes: Buffer, out: Buffer[]): number {
    // Nothing may come between the frames of a header block.
    if (this.#block !== undefined) return this.#giveUp(out);
    this.#passing = frame.length;
    out.push(bytes.subarray(0, frames.FRAME_HEADER_BYTES));
    return frames.FRAME_HEADER_BYTES;
  }

  #openBlock(frame: frames.FrameHeader, raw: Buffer): boolean {
    const parsed = frames.parseHeadersPayload(frame, raw.subarray(frames.FRAME_HEADER_BYTES));
    if (parsed === undefined) return false;
    this.#block = { frame, priority: parsed.priority, raw: [], fragments: [], bytes: 0 };
    this.#extendBlock(raw, parsed.fragment);
    return true;
  }

  #extendBlock(raw: Buffer, fragment: Buffer): void {
    const block = this.#block;
    if (block === undefined) return;
    // Frames without a byte of header cost as well: a peer must not send them for ever.
    block.bytes += raw.length;
    if (block.bytes > MAX_HEADER_BLOCK_BYTES) {
      throw new HeaderLimitError(`header block over ${MAX_HEADER_BLOCK_BYTES} bytes`);
    }
    block.raw.push(raw);
    block.fragments.push(fragment);
  }

  #closeBlock(out: Buffer[]): void {
    const block = this.#block;
    if (block === undefined) return;
    const headers = this.#decode(block);
    if (headers === undefined || (this.#mode === 'watching' && !needsRewriting(headers))) {
      this.#stepAside(out);
      return;
    }
    this.#block = undefined;
    this.#mode = 'rewriting';
    const changed = isRequest(headers) ? replaceAuthority(headers) : headers;
    out.push(...frames.renderHeaderFrames(block.frame, block.priority, encodeLiterals(changed)));
  }

  #decode(block: OpenBlock): readonly Header[] | undefined {
    try {
      return this.#decoder.decode(Buffer.concat(block.fragments));
    } catch (caught) {
      if (caught instanceof HpackError) return undefined;
      throw caught;
    }
  }

  #giveUp(out: Buffer[]): number {
    this.#stepAside(out);
    return 0;
  }

  /** Becomes transparent; what was held back goes out as it came. */
  #stepAside(out: Buffer[]): void {
    this.#mode = 'transparent';
    out.push(...(this.#block?.raw ?? []));
    this.#block = undefined;
  }
}

function needsRewriting(headers: readonly Header[]): boolean {
  return isRequest(headers) && !hasValidAuthority(headers);
}
