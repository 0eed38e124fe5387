import { VmModelError } from '../errors.ts';
import { fitsInteger } from '../domain/integers.ts';
import type { Int64 } from '../int64.ts';
import { escapeHtml, renderGoString, renderJson } from '../json/lossless.ts';
import { formatGoTime } from '../time.ts';

/** How Go reads and prints values of one type. */
export interface FieldType<T> {
  /** As in Go's error texts. */
  readonly goType: string;
  /** Set for fields that Go leaves out when they are empty. */
  readonly omitsEmpty?: true;
  zero(): T;
  /** @param at the place, for error texts: `MigrationOptions.Bandwidth`. */
  read(value: unknown, at: string): T;
  render(value: T): string;
  isEmpty(value: T): boolean;
}

/** The TypeScript type of a field type's values. */
export type ValueOf<F> = F extends FieldType<infer T> ? T : never;

/** The error of Go's encoding/json for a value of the wrong kind. */
export function wrongKind(goType: string, value: unknown, at: string): VmModelError {
  const kind = Array.isArray(value) ? 'array' : kindOf(goType, value);
  const place = at.includes('.') ? `struct field ${at}` : 'value';
  return new VmModelError('InvalidJson', `json: cannot unmarshal ${kind} into Go ${place} of type ${goType}`);
}

/** Go shows a number only where one was wanted, and of another range. */
function kindOf(goType: string, value: unknown): string {
  if (typeof value === 'boolean') return 'bool';
  if (typeof value !== 'number' && typeof value !== 'bigint') return typeof value;
  return /^(?:u?int|float)\d*$/.test(goType) ? `number ${String(value)}` : 'number';
}

/** A Go string. */
export const text: FieldType<string> = {
  goType: 'string',
  zero: () => '',
  read: (value, at) => {
    if (typeof value !== 'string') throw wrongKind('string', value, at);
    return value.toWellFormed();
  },
  render: renderGoString,
  isEmpty: (value) => value === '',
};

/** A Go bool. */
export const flag: FieldType<boolean> = {
  goType: 'bool',
  zero: () => false,
  read: (value, at) => {
    if (typeof value !== 'boolean') throw wrongKind('bool', value, at);
    return value;
  },
  render: String,
  isEmpty: (value) => !value,
};

function integer(goType: 'int32' | 'int64' | 'uint32' | 'uint64' | 'int' | 'uint'): FieldType<Int64> {
  return {
    goType,
    zero: () => 0,
    read: (value, at) => {
      if (!fitsInteger(goType, value)) throw wrongKind(goType, value, at);
      return value;
    },
    render: String,
    isEmpty: (value) => Number(value) === 0,
  };
}

/** A Go int64: a bigint beyond 2^53. */
export const int64 = integer('int64');
/** A Go uint64: a bigint beyond 2^53. */
export const uint64 = integer('uint64');
/** A Go int32. */
export const int32 = integer('int32');
/** A Go uint32. */
export const uint32 = integer('uint32');
/** A Go uint, which has 64 bits; none that is used comes near 2^53. */
export const uint = integer('uint');

/** A Go float64. */
export const float64: FieldType<number> = {
  goType: 'float64',
  zero: () => 0,
  read: (value, at) => {
    const number = typeof value === 'bigint' ? Number(value) : value;
    if (typeof number !== 'number' || !Number.isFinite(number)) throw wrongKind('float64', value, at);
    return number;
  },
  render: (value) => renderJson(value),
  isEmpty: (value) => value === 0,
};

/** A Kubernetes time: whole seconds in UTC, null when unset. */
export const time: FieldType<string | null> = {
  goType: 'v1.Time',
  zero: () => null,
  read: (value, at) => {
    if (typeof value !== 'string') throw wrongKind('string', value, at);
    return formatGoTime(value);
  },
  render: (value) => (value === null ? 'null' : renderGoString(value)),
  isEmpty: (value) => value === null,
};

/** An object of Kubernetes that is carried as it is. */
export const anyObject: FieldType<Readonly<Record<string, unknown>>> = {
  goType: 'object',
  zero: () => ({}),
  read: (value, at) => {
    if (typeof value !== 'object' || Array.isArray(value)) throw wrongKind('object', value, at);
    return value as Readonly<Record<string, unknown>>;
  },
  render: (value) => escapeHtml(renderJson(value)),
  isEmpty: () => false,
};

/** A Go slice: null is not the same as empty. */
export function list<T>(item: FieldType<T>): FieldType<readonly T[] | null> {
  return {
    goType: `[]${item.goType}`,
    zero: () => null,
    read: (value, at) => {
      if (!Array.isArray(value)) throw wrongKind(`[]${item.goType}`, value, at);
      return value.map((one: unknown) => (one === null ? item.zero() : item.read(one, at)));
    },
    render: (value) => (value === null ? 'null' : `[${value.map((one) => item.render(one)).join(',')}]`),
    isEmpty: (value) => value === null || value.length === 0,
  };
}

/** A Go pointer: null when unset. */
export function pointer<T>(target: FieldType<T>): FieldType<T | null> {
  return {
    goType: target.goType,
    zero: () => null,
    read: (value, at) => target.read(value, at),
    render: (value) => (value === null ? 'null' : target.render(value)),
    isEmpty: (value) => value === null,
  };
}

/** A field that Go leaves out when it is empty. */
export function omitEmpty<T>(type: FieldType<T>): FieldType<T> {
  return { ...type, omitsEmpty: true };
}
