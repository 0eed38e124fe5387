import { CODE_LENGTHS } from '../authority/huffman.ts';

/** Builds header blocks byte by byte, so that tests choose every representation. */
function integer(value: number, prefixBits: number, firstByte: number): readonly number[] {
  const mask = 2 ** prefixBits - 1;
  if (value < mask) return [firstByte | value];
  const bytes = [firstByte | mask];
  let rest = value - mask;
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest % 128) | 0x80);
  return [...bytes, rest];
}

export function rawString(text: string): readonly number[] {
  return [...integer(text.length, 7, 0), ...Buffer.from(text, 'latin1')];
}

export function huffmanString(text: string): readonly number[] {
  const bits = Array.from(Buffer.from(text, 'latin1'), (byte) => CODES[byte] ?? '').join('');
  const padded = bits.padEnd(Math.ceil(bits.length / 8) * 8, '1');
  const bytes = (padded.match(/.{8}/g) ?? []).map((byte) => Number.parseInt(byte, 2));
  return [...integer(bytes.length, 7, 0x80), ...bytes];
}

export const indexed = (index: number): readonly number[] => integer(index, 7, 0x80);
export const sizeUpdate = (bytes: number): readonly number[] => integer(bytes, 5, 0x20);

/** A literal: its kind by the first byte (0x40 with, 0x00 without, 0x10 never indexed), its name by index or text. */
export function literal(
  kind: 0x40 | 0x00 | 0x10,
  name: number | readonly number[],
  value: readonly number[],
): readonly number[] {
  const prefixBits = kind === 0x40 ? 6 : 4;
  if (typeof name === 'number') return [...integer(name, prefixBits, kind), ...value];
  return [...integer(0, prefixBits, kind), ...name, ...value];
}

/** Codes as bit strings, dealt out anew from the lengths: an encoder of its own, not the decoder backwards. */
const CODES: readonly string[] = buildCodes();

function buildCodes(): readonly string[] {
  const codes: string[] = [];
  let next = 0n;
  let bits = 0;
  const order = CODE_LENGTHS.map((length, symbol) => ({ length, symbol }));
  for (const { length, symbol } of order.sort((a, b) => a.length - b.length || a.symbol - b.symbol)) {
    next <<= BigInt(length - bits);
    bits = length;
    codes[symbol] = next.toString(2).padStart(length, '0');
    next++;
  }
  return codes;
}
