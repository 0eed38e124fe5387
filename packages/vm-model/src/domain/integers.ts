import type { Kind } from './plan.ts';

const RANGES: Readonly<Partial<Record<Kind, readonly [bigint, bigint]>>> = {
  int32: [-(2n ** 31n), 2n ** 31n - 1n],
  uint32: [0n, 2n ** 32n - 1n],
  int64: [-(2n ** 63n), 2n ** 63n - 1n],
  uint64: [0n, 2n ** 64n - 1n],
  // Go's int and uint have 64 bits; these fields are plain numbers here and end where a number loses digits.
  int: [BigInt(Number.MIN_SAFE_INTEGER), BigInt(Number.MAX_SAFE_INTEGER)],
  uint: [0n, BigInt(Number.MAX_SAFE_INTEGER)],
};

/** Whether a parsed JSON value is an integer in the range of a Go type. */
export function fitsInteger(kind: Kind, value: unknown): value is number | bigint {
  const range = RANGES[kind];
  if (range === undefined) return false;
  if (typeof value === 'bigint') return value >= range[0] && value <= range[1];
  return Number.isSafeInteger(value) && BigInt(value as number) >= range[0] && BigInt(value as number) <= range[1];
}

/** Reads a decimal integer of a Go type; blank text is zero, as for Go's XML decoder. */
export function parseInteger(kind: Kind, text: string): number | bigint | undefined {
  const trimmed = text.trim();
  if (trimmed === '') return 0;
  if (!/^[+-]?\d+$/.test(trimmed) || (kind.startsWith('u') && /^[+-]/.test(trimmed))) return undefined;
  const value = BigInt(trimmed.replace(/^\+/, ''));
  if (!fitsInteger(kind, value)) return undefined;
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : value;
}
