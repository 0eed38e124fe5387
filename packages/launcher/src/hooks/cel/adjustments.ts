import type { CelValue, TimeValue } from './values.ts';
import { CelFailure } from './values.ts';

/** Calls a function of the library's. */
type LibraryCall = (name: string, args: readonly CelValue[]) => CelValue;

const SECOND_NS = 1_000_000_000n;
const DURATION = 'google.protobuf.Duration';

/** Whether a value is a timestamp or a duration. */
export function isTime(value: CelValue | undefined): value is TimeValue {
  return typeof value === 'object' && value !== null && 'message' in value;
}

function isDuration(value: CelValue | undefined): value is TimeValue {
  return isTime(value) && value.desc.typeName === DURATION;
}

function nanosecondsOf({ message }: TimeValue): bigint {
  const { seconds, nanos } = message as unknown as { readonly seconds: bigint; readonly nanos: number };
  return seconds * SECOND_NS + BigInt(nanos);
}

/** `90.5s`; the library fills up with zeros. */
function durationText(value: TimeValue): string {
  const total = nanosecondsOf(value);
  const size = total < 0n ? -total : total;
  const fraction = String(size % SECOND_NS)
    .padStart(9, '0')
    .replace(/0+$/, '');
  return `${total < 0n ? '-' : ''}${size / SECOND_NS}${fraction === '' ? '' : `.${fraction}`}s`;
}

/** As Go's `%g` prints it: with an exponent from a million on. */
function doubleText(value: number): string {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? 'NaN' : value > 0 ? '+Inf' : '-Inf';
  const [digits = '', power = '0'] = value.toExponential().split('e');
  const exponent = Number(power);
  if (exponent >= -4 && exponent < 6) return String(value);
  return `${digits}e${exponent < 0 ? '-' : '+'}${String(Math.abs(exponent)).padStart(2, '0')}`;
}

function readDouble(text: string): number {
  const value = Number(text);
  if (text.trim() !== text || text === '' || (Number.isNaN(value) && text !== 'NaN')) {
    throw new CelFailure("type conversion error from 'string' to 'double'");
  }
  return value;
}

/**
 * What cel-go does otherwise than the library.
 *
 * @returns undefined when they agree.
 */
export function adjustedCall(name: string, args: readonly CelValue[], call: LibraryCall): CelValue | undefined {
  const [first] = args;
  switch (name) {
    case 'string':
      if (isDuration(first)) return durationText(first);
      return typeof first === 'number' ? doubleText(first) : undefined;
    case 'double':
      return typeof first === 'string' ? readDouble(first) : undefined;
    case 'int':
      return isDuration(first) ? nanosecondsOf(first) : undefined;
    case 'duration':
      if (typeof first === 'bigint') throw new CelFailure(`type conversion error from 'int' to '${DURATION}'`);
      return undefined;
    case 'timestamp':
      if (typeof first !== 'bigint') return undefined;
      return call('_+_', [call(name, ['1970-01-01T00:00:00Z']), call('duration', [`${first}s`])]);
    case 'getMilliseconds':
      return isDuration(first) ? nanosecondsOf(first) / 1_000_000n : undefined;
    default:
      return undefined;
  }
}
