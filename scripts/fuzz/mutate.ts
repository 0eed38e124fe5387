import type { Random } from './random.ts';

/** Longest input: enough for every limit that a reader checks, small enough to make many of them. */
const MAX_BYTES = 65_536;
const MAX_CHANGES = 6;
/** Bytes at the edges of varints, lengths, text encodings, JSON and XML. */
const EDGES: readonly Buffer[] = [
  '00',
  'ff',
  '7f',
  '80',
  'ffffffffffffffffff01',
  '80808080808080808000',
  'c080',
  'eda080',
  'f4908080',
  'efbfbe',
].map((hex) => Buffer.from(hex, 'hex'));
const WORDS: readonly Buffer[] = [
  'null',
  'true',
  '{',
  '}',
  '[',
  ']',
  '"',
  '\\u0000',
  '\\ud800',
  '1e999',
  '-0',
  '9223372036854775808',
  '{"a":',
  '[[[[',
  '<',
  '>',
  '&',
  '&#0;',
  '&lt;',
  ']]>',
  '<![CDATA[',
  '<!DOCTYPE a [',
  '<?xml ',
  'xmlns:qemu="x"',
  '/>',
  '__proto__',
].map((text) => Buffer.from(text));

type Change = (input: Buffer, random: Random, other: Buffer) => Buffer;

const CHANGES: readonly Change[] = [
  (input, random) => changed(input, random, (byte) => byte ^ (1 << random.below(8))),
  (input, random) => changed(input, random, () => random.below(256)),
  (input, random) => inserted(input, random, random.pick(EDGES)),
  (input, random) => inserted(input, random, random.pick(WORDS)),
  (input, random) => input.subarray(0, random.below(input.length + 1)),
  (input, random) => input.subarray(random.below(input.length + 1)),
  (input, random) => removed(input, random),
  (input, random) => inserted(input, random, piece(input, random)),
  (input, random, other) => inserted(input, random, piece(other, random)),
  (input, random) => repeated(input, random),
];

/** Changes an input in a few places; `other` lends pieces. */
export function mutate(input: Buffer, other: Buffer, random: Random): Buffer {
  let bytes = input;
  for (let i = random.below(MAX_CHANGES) + 1; i > 0; i -= 1) bytes = random.pick(CHANGES)(bytes, random, other);
  return bytes.subarray(0, MAX_BYTES);
}

function changed(input: Buffer, random: Random, change: (byte: number) => number): Buffer {
  if (input.length === 0) return input;
  const copy = Buffer.from(input);
  const at = random.below(copy.length);
  copy[at] = change(copy[at] ?? 0);
  return copy;
}

function inserted(input: Buffer, random: Random, what: Buffer): Buffer {
  const at = random.below(input.length + 1);
  return Buffer.concat([input.subarray(0, at), what, input.subarray(at)]);
}

function removed(input: Buffer, random: Random): Buffer {
  const at = random.below(input.length + 1);
  return Buffer.concat([input.subarray(0, at), input.subarray(at + random.below(16) + 1)]);
}

function piece(input: Buffer, random: Random): Buffer {
  const at = random.below(input.length + 1);
  return input.subarray(at, at + random.below(64));
}

/** Nests or repeats: what a reader that recurses or collects cannot bear without a limit. */
function repeated(input: Buffer, random: Random): Buffer {
  const part = random.below(2) === 0 ? random.pick(WORDS) : piece(input, random);
  return inserted(input, random, Buffer.concat(Array.from({ length: random.below(200) }, () => part)));
}
