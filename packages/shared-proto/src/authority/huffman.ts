import { HpackError } from './hpack-error.ts';

/**
 * Code length in bits of each byte value, and of EOS as the last one. The code is canonical, so that the lengths say
 * all: codes are dealt out by rising length, and among equals by rising value.
 *
 * @source RFC 7541 appendix B
 */
// prettier-ignore
export const CODE_LENGTHS: readonly number[] = [
  13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28,
  28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,
  6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6,
  5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
  13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
  7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
  15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5,
  6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28,
  20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
  24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
  22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23,
  21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
  26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25,
  19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,
  20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
  26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
  30,
];

const EOS = 256;
const MAX_BITS = 30;
const MAX_PADDING_BITS = 7;

interface LengthClass {
  /** The code of the first symbol of this length. */
  readonly firstCode: number;
  readonly symbols: readonly number[];
}

/** The canonical code, one class per length from 0 to 30 bits. */
function buildClasses(lengths: readonly number[]): readonly LengthClass[] {
  const classes: LengthClass[] = [];
  let code = 0;
  for (let bits = 0; bits <= MAX_BITS; bits++) {
    const symbols = lengths.flatMap((length, symbol) => (length === bits ? [symbol] : []));
    classes.push({ firstCode: code, symbols });
    code = (code + symbols.length) * 2;
  }
  return classes;
}

const CLASSES = buildClasses(CODE_LENGTHS);

/**
 * Decodes a Huffman-coded HPACK string.
 *
 * @returns the string with one character per byte (latin1).
 * @throws {HpackError} on EOS inside the string, or on padding that is not a short run of ones.
 * @source RFC 7541 section 5.2
 */
export function decodeHuffman(bytes: Uint8Array): string {
  const out: number[] = [];
  let code = 0;
  let bits = 0;
  for (const byte of bytes) {
    for (let shift = 7; shift >= 0; shift--) {
      code = code * 2 + ((byte >> shift) & 1);
      bits++;
      const symbol = lookUp(code, bits);
      if (symbol === undefined) continue;
      if (symbol === EOS) throw new HpackError('end-of-string symbol inside a Huffman string');
      out.push(symbol);
      code = 0;
      bits = 0;
    }
  }
  if (bits > MAX_PADDING_BITS || code !== 2 ** bits - 1) throw new HpackError('bad padding of a Huffman string');
  return Buffer.from(out).toString('latin1');
}

function lookUp(code: number, bits: number): number | undefined {
  const entry = CLASSES[bits];
  if (entry === undefined) throw new HpackError('unknown code in a Huffman string');
  return entry.symbols[code - entry.firstCode];
}
