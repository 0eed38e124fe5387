/** A netlink attribute to write: number, bytes, and for a nested one its parts. */
export interface Attribute {
  readonly type: number;
  readonly value: Uint8Array | readonly Attribute[];
}

/** One message out of a netlink datagram. */
export interface NetlinkMessage {
  readonly type: number;
  readonly flags: number;
  readonly sequence: number;
  readonly payload: Buffer;
}

const HEADER_BYTES = 16;
const NLA_F_NESTED = 0x8000;
const NLA_TYPE_MASK = 0x3fff;

/** Bytes of one message: header, the family's fixed part, attributes. All numbers are in the machine's (little) order. */
export function renderMessage(
  head: { readonly type: number; readonly flags: number; readonly sequence: number },
  fixed: Uint8Array,
  attributes: readonly Attribute[],
): Buffer {
  const body = Buffer.concat([pad(Buffer.from(fixed)), ...attributes.map(renderAttribute)]);
  const header = Buffer.alloc(HEADER_BYTES);
  header.writeUInt32LE(HEADER_BYTES + body.length, 0);
  header.writeUInt16LE(head.type, 4);
  header.writeUInt16LE(head.flags, 6);
  header.writeUInt32LE(head.sequence, 8);
  return Buffer.concat([header, body]);
}

/** Splits a datagram; a length that does not fit ends it. */
export function parseMessages(datagram: Buffer): NetlinkMessage[] {
  const messages: NetlinkMessage[] = [];
  for (let at = 0; at + HEADER_BYTES <= datagram.length;) {
    const length = datagram.readUInt32LE(at);
    if (length < HEADER_BYTES || at + length > datagram.length) break;
    messages.push({
      type: datagram.readUInt16LE(at + 4),
      flags: datagram.readUInt16LE(at + 6),
      sequence: datagram.readUInt32LE(at + 8),
      payload: datagram.subarray(at + HEADER_BYTES, at + length),
    });
    at += align(length);
  }
  return messages;
}

/** Attributes by type; of repeated ones the last. */
export function parseAttributes(bytes: Buffer): Map<number, Buffer> {
  const found = new Map<number, Buffer>();
  for (let at = 0; at + 4 <= bytes.length;) {
    const length = bytes.readUInt16LE(at);
    if (length < 4 || at + length > bytes.length) break;
    found.set(bytes.readUInt16LE(at + 2) & NLA_TYPE_MASK, bytes.subarray(at + 4, at + length));
    at += align(length);
  }
  return found;
}

export function u8(type: number, value: number): Attribute {
  return { type, value: Uint8Array.of(value) };
}

export function u32(type: number, value: number): Attribute {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return { type, value: bytes };
}

export function text(type: number, value: string): Attribute {
  return { type, value: Buffer.from(`${value}\0`, 'latin1') };
}

/** Text of an attribute, without its final NUL. */
export function readText(bytes: Buffer | undefined): string {
  return (bytes ?? Buffer.alloc(0)).toString('latin1').replace(/\0.*$/s, '');
}

function renderAttribute(attribute: Attribute): Buffer {
  const { value: content } = attribute;
  const nested = !(content instanceof Uint8Array);
  const value = nested ? Buffer.concat(content.map(renderAttribute)) : Buffer.from(content);
  const header = Buffer.alloc(4);
  header.writeUInt16LE(4 + value.length, 0);
  header.writeUInt16LE(nested ? attribute.type | NLA_F_NESTED : attribute.type, 2);
  return pad(Buffer.concat([header, value]));
}

function align(length: number): number {
  return (length + 3) & ~3;
}

function pad(bytes: Buffer): Buffer {
  return bytes.length % 4 === 0 ? bytes : Buffer.concat([bytes, Buffer.alloc(4 - (bytes.length % 4))]);
}
