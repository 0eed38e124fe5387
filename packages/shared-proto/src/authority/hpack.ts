import { HpackError } from './hpack-error.ts';
import { type Header, headerSize, HpackTable } from './hpack-table.ts';
import { decodeHuffman } from './huffman.ts';

export type { Header } from './hpack-table.ts';

/** SETTINGS_HEADER_TABLE_SIZE of a server that does not say another one, as grpc-js's. */
const TABLE_LIMIT_BYTES = 4_096;
/** Integers beyond this are no length or index of a block that we take; it also keeps the arithmetic exact. */
const MAX_INTEGER = 2 ** 24;

/** What the first bits of a header say. @source RFC 7541 section 6 */
const INDEXED = 0x80;
const WITH_INDEXING = 0x40;
const SIZE_UPDATE = 0x20;
const NEVER_INDEXED = 0x10;

/** Decodes the header blocks of one direction of a connection; every block has to go through it, in order. */
export class HpackDecoder {
  readonly #table = new HpackTable(TABLE_LIMIT_BYTES);
  readonly #maxListBytes: number;

  /** @param maxListBytes limit of a block's headers, as HPACK counts them. */
  constructor(maxListBytes: number) {
    this.#maxListBytes = maxListBytes;
  }

  /** @throws {HpackError} on anything that HPACK forbids, or a list of headers over the limit. */
  decode(block: Uint8Array): readonly Header[] {
    const reader = new BlockReader(block);
    const headers: Header[] = [];
    let listBytes = 0;
    while (!reader.atEnd) {
      const header = this.#decodeOne(reader);
      if (header === undefined) {
        if (headers.length > 0) throw new HpackError('table size update behind a header');
        continue;
      }
      listBytes += headerSize(header.name, header.value);
      if (listBytes > this.#maxListBytes) throw new HpackError(`headers over ${this.#maxListBytes} bytes`);
      headers.push(header);
    }
    return headers;
  }

  /** @returns undefined for a table size update. */
  #decodeOne(reader: BlockReader): Header | undefined {
    const kind = reader.peek();
    if ((kind & INDEXED) !== 0) {
      const [name, value] = this.#table.get(reader.integer(7));
      return { name, value, neverIndexed: false };
    }
    if ((kind & WITH_INDEXING) !== 0) {
      const header = this.#literal(reader, 6, false);
      this.#table.add(header.name, header.value);
      return header;
    }
    if ((kind & SIZE_UPDATE) !== 0) {
      this.#table.resize(reader.integer(5));
      return undefined;
    }
    return this.#literal(reader, 4, (kind & NEVER_INDEXED) !== 0);
  }

  #literal(reader: BlockReader, prefixBits: number, neverIndexed: boolean): Header {
    const index = reader.integer(prefixBits);
    const name = index === 0 ? reader.string() : this.#table.get(index)[0];
    return { name, value: reader.string(), neverIndexed };
  }
}

/** Reads HPACK's integers and strings. @source RFC 7541 section 5 */
class BlockReader {
  readonly #block: Uint8Array;
  #offset = 0;

  constructor(block: Uint8Array) {
    this.#block = block;
  }

  get atEnd(): boolean {
    return this.#offset >= this.#block.length;
  }

  peek(): number {
    const byte = this.#block[this.#offset];
    if (byte === undefined) throw new HpackError('header block ends too early');
    return byte;
  }

  integer(prefixBits: number): number {
    const mask = 2 ** prefixBits - 1;
    let value = this.#byte() & mask;
    if (value < mask) return value;
    for (let factor = 1; ; factor *= 128) {
      const byte = this.#byte();
      value += (byte & 0x7f) * factor;
      if (value > MAX_INTEGER || factor > MAX_INTEGER) throw new HpackError('integer out of range');
      if ((byte & 0x80) === 0) return value;
    }
  }

  string(): string {
    const isHuffman = (this.peek() & 0x80) !== 0;
    const length = this.integer(7);
    const end = this.#offset + length;
    if (end > this.#block.length) throw new HpackError('string behind the end of the header block');
    const bytes = this.#block.subarray(this.#offset, end);
    this.#offset = end;
    return isHuffman ? decodeHuffman(bytes) : Buffer.from(bytes).toString('latin1');
  }

  #byte(): number {
    const byte = this.peek();
    this.#offset++;
    return byte;
  }
}

/**
 * Encodes headers as plain literals, which neither read nor change any table: a stream of such blocks stays in step
 * with its decoder whatever the original sender has indexed.
 */
export function encodeLiterals(headers: readonly Header[]): Buffer {
  const parts = headers.flatMap((header) => [
    Buffer.of(header.neverIndexed ? NEVER_INDEXED : 0),
    encodeString(header.name),
    encodeString(header.value),
  ]);
  return Buffer.concat(parts);
}

function encodeString(text: string): Buffer {
  const bytes = Buffer.from(text, 'latin1');
  return Buffer.concat([encodeInteger(bytes.length, 7), bytes]);
}

function encodeInteger(value: number, prefixBits: number): Buffer {
  const mask = 2 ** prefixBits - 1;
  if (value < mask) return Buffer.of(value);
  const bytes = [mask];
  let rest = value - mask;
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest % 128) | 0x80);
  bytes.push(rest);
  return Buffer.from(bytes);
}
