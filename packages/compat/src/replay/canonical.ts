import { BinaryReader, WireType } from '@bufbuild/protobuf/wire';

/**
 * Whether two encodings are the same but for the order of repeated fields that are neighbours: entries of a map have no
 * order, and nothing else in this protocol is both repeated and a message, but lists of NUMA cells, which are written
 * in the order in which they were read.
 */
export function isSameButForMaps(a: Buffer, b: Buffer): boolean {
  if (a.equals(b)) return true;
  const [first, second] = [canonical(a), canonical(b)];
  return first !== undefined && second !== undefined && first.equals(second);
}

/** The fields of a message with neighbours of one number in a fixed order, at every depth where they can be read. */
function canonical(bytes: Buffer): Buffer | undefined {
  try {
    const groups: { readonly number: number; readonly items: Buffer[] }[] = [];
    const reader = new BinaryReader(bytes);
    while (reader.pos < reader.len) {
      const start = reader.pos;
      const [number, wireType] = reader.tag();
      const item = readField(bytes, reader, start, number, wireType);
      const last = groups.at(-1);
      if (last?.number === number) last.items.push(item);
      else groups.push({ number, items: [item] });
    }
    return Buffer.concat(groups.flatMap(({ items }) => items.sort((a, b) => Buffer.compare(a, b))));
  } catch {
    return undefined;
  }
}

function readField(bytes: Buffer, reader: BinaryReader, start: number, number: number, wireType: WireType): Buffer {
  if (wireType !== WireType.LengthDelimited) {
    reader.skip(wireType, number);
    return bytes.subarray(start, reader.pos);
  }
  const content = Buffer.from(reader.bytes());
  const head = bytes.subarray(start, reader.pos - content.length);
  return Buffer.concat([head, canonical(content) ?? content]);
}
