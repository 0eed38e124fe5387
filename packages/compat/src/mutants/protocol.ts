/** A field of a message as it lies on the wire. */
interface WireField {
  readonly number: number;
  readonly start: number;
  readonly end: number;
}

function readVarint(bytes: Uint8Array, at: number): { readonly value: number; readonly next: number } {
  let value = 0;
  let scale = 1;
  for (let i = at; i < bytes.length; i++) {
    const byte = bytes[i] ?? 0;
    value += (byte & 0x7f) * scale;
    if (byte < 0x80) return { value, next: i + 1 };
    scale *= 128;
  }
  return { value, next: bytes.length };
}

function fieldsOf(bytes: Uint8Array): readonly WireField[] {
  const fields: WireField[] = [];
  for (let at = 0; at < bytes.length;) {
    const tag = readVarint(bytes, at);
    const type = tag.value & 7;
    let end = tag.next;
    if (type === 0) end = readVarint(bytes, end).next;
    else if (type === 2) {
      const length = readVarint(bytes, end);
      end = length.next + length.value;
    } else end += type === 1 ? 8 : 4;
    fields.push({ number: Math.floor(tag.value / 8), start: at, end });
    at = end;
  }
  return fields;
}

/** A message without one of its fields. */
export function dropField(bytes: Uint8Array, number: number): Uint8Array {
  const kept = fieldsOf(bytes).filter((field) => field.number !== number);
  return Buffer.concat(kept.map(({ start, end }) => bytes.subarray(start, end)));
}

/** A message one of whose fields got another number below 16. */
export function renumberField(bytes: Uint8Array, from: number, to: number): Uint8Array {
  const changed = Buffer.from(bytes);
  for (const { number, start } of fieldsOf(bytes)) {
    if (number === from) changed[start] = ((changed[start] ?? 0) & 7) | (to << 3);
  }
  return changed;
}
