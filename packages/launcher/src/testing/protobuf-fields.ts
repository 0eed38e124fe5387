/** A value as it lies on the wire: bytes, or a varint. */
type FieldValue = Buffer | number;

/** Values of a protobuf message by field number. */
export type ProtobufFields = ReadonlyMap<number, readonly FieldValue[]>;

const BYTES = 2;

function readVarint(message: Buffer, at: number): { readonly value: number; readonly end: number } {
  let value = 0;
  let end = at;
  for (let factor = 1; ; factor *= 128) {
    const byte = message[end++] ?? 0;
    value += (byte & 0x7f) * factor;
    if (byte < 0x80) return { value, end };
  }
}

function writeVarint(value: number): Buffer {
  const bytes: number[] = [];
  let rest = value;
  for (; rest >= 0x80; rest = Math.floor(rest / 128)) bytes.push((rest % 128) | 0x80);
  return Buffer.from([...bytes, rest]);
}

/** Reads the fields of a message without its schema. */
export function readFields(message: Buffer): ProtobufFields {
  const fields = new Map<number, FieldValue[]>();
  for (let at = 0; at < message.length;) {
    const tag = readVarint(message, at);
    const first = readVarint(message, tag.end);
    const isBytes = (tag.value & 7) === BYTES;
    at = isBytes ? first.end + first.value : first.end;
    const value = isBytes ? message.subarray(first.end, at) : first.value;
    fields.set(tag.value >> 3, [...(fields.get(tag.value >> 3) ?? []), value]);
  }
  return fields;
}

/** Writes a message from its fields, texts as bytes. */
export function writeFields(...fields: readonly (readonly [number: number, value: string | FieldValue])[]): Buffer {
  return Buffer.concat(
    fields.flatMap(([number, value]) => {
      if (typeof value === 'number') return [writeVarint(number << 3), writeVarint(value)];
      const bytes = Buffer.from(value);
      return [writeVarint((number << 3) | BYTES), writeVarint(bytes.length), bytes];
    }),
  );
}
