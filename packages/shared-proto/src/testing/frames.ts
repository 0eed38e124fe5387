import { FRAME_HEADER_BYTES, parseFrameHeader, type FrameHeader } from '../authority/frames.ts';

/** A frame of a recorded or made-up connection. */
export interface Frame extends FrameHeader {
  readonly payload: Buffer;
}

/** Splits bytes without a preface into frames. */
export function splitFrames(bytes: Buffer): readonly Frame[] {
  const found: Frame[] = [];
  for (let rest = bytes; rest.length >= FRAME_HEADER_BYTES;) {
    const header = parseFrameHeader(rest);
    const end = FRAME_HEADER_BYTES + header.length;
    found.push({ ...header, payload: rest.subarray(FRAME_HEADER_BYTES, end) });
    rest = rest.subarray(end);
  }
  return found;
}

/** Renders a frame. */
export function frame(type: number, flags: number, streamId: number, payload: Uint8Array): Buffer {
  const header = Buffer.alloc(FRAME_HEADER_BYTES);
  header.writeUIntBE(payload.length, 0, 3);
  header.writeUInt8(type, 3);
  header.writeUInt8(flags, 4);
  header.writeUInt32BE(streamId, 5);
  return Buffer.concat([header, payload]);
}

/** Cuts bytes into pieces at the given places. */
export function cutAt(bytes: Buffer, places: readonly number[]): readonly Buffer[] {
  const sorted = [0, ...places.map((place) => place % (bytes.length + 1)).sort((a, b) => a - b), bytes.length];
  return sorted.slice(1).map((end, i) => bytes.subarray(sorted[i], end));
}
