/** HTTP/2's client preface. @source RFC 9113 section 3.4 */
export const CLIENT_PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'latin1');
export const FRAME_HEADER_BYTES = 9;
/** SETTINGS_MAX_FRAME_SIZE of a server that does not say another one, as grpc-js's. */
export const MAX_FRAME_BYTES = 16_384;

export const HEADERS = 0x1;
export const CONTINUATION = 0x9;

const END_STREAM = 0x1;
const END_HEADERS = 0x4;
const PADDED = 0x8;
const PRIORITY = 0x20;
const PRIORITY_BYTES = 5;

/** The nine bytes in front of every frame. */
export interface FrameHeader {
  readonly length: number;
  readonly type: number;
  readonly flags: number;
  readonly streamId: number;
}

export function parseFrameHeader(bytes: Buffer): FrameHeader {
  return {
    length: bytes.readUIntBE(0, 3),
    type: bytes.readUInt8(3),
    flags: bytes.readUInt8(4),
    streamId: bytes.readUInt32BE(5) & 0x7fffffff,
  };
}

/** Says whether a HEADERS or CONTINUATION frame ends its header block. */
export function endsHeaders(frame: FrameHeader): boolean {
  return (frame.flags & END_HEADERS) !== 0;
}

/** A HEADERS frame taken apart. */
export interface HeadersPayload {
  /** The stream dependency, if the frame has one. */
  readonly priority: Buffer;
  readonly fragment: Buffer;
}

/** @returns undefined if padding or priority do not fit into the frame. */
export function parseHeadersPayload(frame: FrameHeader, payload: Buffer): HeadersPayload | undefined {
  const isPadded = (frame.flags & PADDED) !== 0;
  const padding = isPadded ? (payload[0] ?? 0) : 0;
  const start = isPadded ? 1 : 0;
  const fragmentStart = start + ((frame.flags & PRIORITY) !== 0 ? PRIORITY_BYTES : 0);
  const end = payload.length - padding;
  if (end < fragmentStart) return undefined;
  return { priority: payload.subarray(start, fragmentStart), fragment: payload.subarray(fragmentStart, end) };
}

/**
 * Renders a header block as a HEADERS frame and as many CONTINUATION frames as it needs, without padding.
 *
 * @param frame the HEADERS frame that it stands for: stream and END_STREAM are taken from it.
 */
export function renderHeaderFrames(frame: FrameHeader, priority: Buffer, block: Buffer): readonly Buffer[] {
  const kept = frame.flags & (END_STREAM | (priority.length > 0 ? PRIORITY : 0));
  const firstBytes = MAX_FRAME_BYTES - priority.length;
  const first = Buffer.concat([priority, block.subarray(0, firstBytes)]);
  const frames: Buffer[] = [];
  const addFrame = (type: number, flags: number, payload: Buffer, isLast: boolean): void => {
    frames.push(renderFrameHeader(type, isLast ? flags | END_HEADERS : flags, frame.streamId, payload.length), payload);
  };
  addFrame(HEADERS, kept, first, block.length <= firstBytes);
  for (let offset = firstBytes; offset < block.length; offset += MAX_FRAME_BYTES) {
    const payload = block.subarray(offset, offset + MAX_FRAME_BYTES);
    addFrame(CONTINUATION, 0, payload, offset + MAX_FRAME_BYTES >= block.length);
  }
  return frames;
}

function renderFrameHeader(type: number, flags: number, streamId: number, length: number): Buffer {
  const header = Buffer.alloc(FRAME_HEADER_BYTES);
  header.writeUIntBE(length, 0, 3);
  header.writeUInt8(type, 3);
  header.writeUInt8(flags, 4);
  header.writeUInt32BE(streamId, 5);
  return header;
}
