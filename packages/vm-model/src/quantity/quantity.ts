import type { Quantity } from '../vmi/metadata.ts';

/** Which family of suffixes a quantity was written with, and is printed with. */
export type QuantityFormat = 'BinarySI' | 'DecimalSI' | 'DecimalExponent';

/** An amount in Kubernetes notation, exact to a thousand-millionth. */
export interface ParsedQuantity {
  /** The amount times 10^9. */
  readonly nano: bigint;
  readonly format: QuantityFormat;
  /**
   * Whether Go's library holds it as a plain integer. KubeVirt takes one byte off what it does not
   * (`1.5Gi`, or more digits than fit its quick path).
   */
  readonly isPlainInteger: boolean;
}

const NANO = 1_000_000_000n;
const PATTERN = /^([+-]?)(\d*)(?:\.(\d*))?(?:([numkMGTPE]|[KMGTPE]i)|[eE]([+-]?\d+))?$/;
const BINARY_SHIFT: Readonly<Record<string, number>> = { Ki: 10, Mi: 20, Gi: 30, Ti: 40, Pi: 50, Ei: 60 };
const DECIMAL_EXPONENT: Readonly<Record<string, number>> = {
  n: -9,
  u: -6,
  m: -3,
  '': 0,
  k: 3,
  M: 6,
  G: 9,
  T: 12,
  P: 15,
  E: 18,
};
const BINARY_SUFFIXES = ['', 'Ki', 'Mi', 'Gi', 'Ti', 'Pi', 'Ei'];
const MAX_DECIMAL_DIGITS = 18;
/** Exponents beyond it give the same capped or rounded amount. */
const MAX_EXPONENT = 1_000;
/** Amounts are capped at the largest 64-bit integer. */
const MAX_NANO = (2n ** 63n - 1n) * NANO;

/**
 * Parses an amount as `1Gi`, `500m`, `1.5`, `2e3`.
 *
 * @returns undefined when the text is no quantity.
 * @source Kubernetes apimachinery pkg/api/resource/quantity.go
 */
export function parseQuantity(quantity: Quantity): ParsedQuantity | undefined {
  const parts = PATTERN.exec(String(quantity));
  if (parts === null) return undefined;
  const [, sign, digits = '', fraction = '', suffix = '', exponentText] = parts;
  if (digits === '' && fraction === '') return undefined;
  const whole = digits.replace(/^0+(?=.)/, '');
  const unscaled = BigInt(`${whole}${fraction}`) * (sign === '-' ? -1n : 1n);
  const shift = BINARY_SHIFT[suffix];
  if (shift !== undefined) {
    const nano = cap(divideUp((unscaled << BigInt(shift)) * NANO, 10n ** BigInt(fraction.length)));
    const spareDigits = 15 - whole.length - Math.floor((shift * 3) / 10) - 1;
    const isTiny = nano > -NANO && nano < NANO && nano !== 0n;
    return {
      nano,
      format: isTiny ? 'DecimalSI' : 'BinarySI',
      isPlainInteger: nano === 0n || (fraction === '' && spareDigits >= 0),
    };
  }
  const written = exponentText === undefined ? (DECIMAL_EXPONENT[suffix] ?? 0) : Number(exponentText);
  const exponent = Math.max(-MAX_EXPONENT, Math.min(MAX_EXPONENT, written));
  const power = exponent - fraction.length + 9;
  const nano = cap(power >= 0 ? unscaled * 10n ** BigInt(power) : divideUp(unscaled, 10n ** BigInt(-power)));
  return {
    nano,
    format: exponentText === undefined ? 'DecimalSI' : 'DecimalExponent',
    isPlainInteger:
      nano === 0n || (exponent >= fraction.length && whole.length + fraction.length <= MAX_DECIMAL_DIGITS),
  };
}

/** The amount as an integer, rounded away from zero; 0 when it is unset or no quantity. */
export function quantityValue(quantity: Quantity | undefined): bigint {
  if (quantity === undefined) return 0n;
  const parsed = parseQuantity(quantity);
  return parsed === undefined ? 0n : divideUp(parsed.nano, NANO);
}

/** Whether an amount is unset or zero. */
export function isZeroQuantity(quantity: Quantity | undefined): boolean {
  if (quantity === undefined) return true;
  return (parseQuantity(quantity)?.nano ?? 0n) === 0n;
}

/** An amount in its canonical form: `1024Mi` becomes `1Gi`; text that is no quantity stays. */
export function canonicalQuantity(quantity: Quantity): string {
  const parsed = parseQuantity(quantity);
  return parsed === undefined ? String(quantity) : renderQuantity(parsed);
}

/** Prints an amount in the shortest form of its family of suffixes. */
export function renderQuantity(quantity: Pick<ParsedQuantity, 'nano' | 'format'>): string {
  const { nano, format } = quantity;
  if (nano === 0n) return '0';
  const isWhole = nano % NANO === 0n;
  const value = nano / NANO;
  if (format === 'BinarySI' && isWhole && (value >= 1024n || value <= -1024n)) return renderBinary(value);
  return renderDecimal(nano, format === 'DecimalExponent');
}

/** Prints a number of bytes as a binary quantity. */
export function renderBytes(bytes: bigint): string {
  return renderQuantity({ nano: bytes * NANO, format: 'BinarySI' });
}

function renderBinary(value: bigint): string {
  let mantissa = value;
  let step = 0;
  while (step < BINARY_SUFFIXES.length - 1 && mantissa % 1024n === 0n) {
    mantissa /= 1024n;
    step++;
  }
  return `${String(mantissa)}${BINARY_SUFFIXES[step] ?? ''}`;
}

function renderDecimal(nano: bigint, isExponent: boolean): string {
  let mantissa = nano;
  let exponent = -9;
  while (mantissa % 1000n === 0n) {
    mantissa /= 1000n;
    exponent += 3;
  }
  if (exponent === 0) return String(mantissa);
  const suffix = Object.entries(DECIMAL_EXPONENT).find(([, e]) => e === exponent)?.[0];
  return isExponent || suffix === undefined
    ? `${String(mantissa)}e${String(exponent)}`
    : `${String(mantissa)}${suffix}`;
}

function cap(nano: bigint): bigint {
  if (nano > MAX_NANO) return MAX_NANO;
  return nano < -MAX_NANO ? -MAX_NANO : nano;
}

/** Divides and rounds away from zero. */
function divideUp(dividend: bigint, divisor: bigint): bigint {
  const quotient = dividend / divisor;
  if (dividend % divisor === 0n) return quotient;
  return dividend < 0n ? quotient - 1n : quotient + 1n;
}
