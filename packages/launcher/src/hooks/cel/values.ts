import type { CelUint, CelValue as LibraryValue } from '@bufbuild/cel';
import { celUint, isCelUint } from '@bufbuild/cel';
import type { FieldType, Schema, StructType } from './schema.ts';

/** Any value of an expression: scalars, times and durations as the CEL library has them, the rest as below. */
export type CelValue =
  Exclude<Scalar, object> | CelUint | Uint8Array | TimeValue | readonly CelValue[] | MapValue | StructValue | TypeValue;

type Scalar = string | bigint | number | boolean | null;

const ZERO_UINT = celUint(0n);

/** A timestamp or duration. */
export type TimeValue = Extract<LibraryValue, { readonly desc: unknown; readonly message: unknown }>;

/** A map; keys are told apart by their kind and value. */
export class MapValue {
  readonly #entries = new Map<string, readonly [key: CelValue, value: CelValue]>();

  constructor(entries: Iterable<readonly [CelValue, CelValue]>) {
    for (const entry of entries) this.#entries.set(keyText(entry[0]), entry);
  }

  get size(): number {
    return this.#entries.size;
  }

  get(key: CelValue): CelValue | undefined {
    return this.#entries.get(keyText(key))?.[1];
  }

  has(key: CelValue): boolean {
    return this.#entries.has(keyText(key));
  }

  keys(): readonly CelValue[] {
    return [...this.#entries.values()].map(([key]) => key);
  }
}

/** A Go struct; zero values of its fields are not in `fields`. */
export class StructValue {
  readonly type: StructType;
  readonly fields: ReadonlyMap<string, CelValue>;
  /** An expression made it: only what it names is there, and that counts even when it is the zero value. */
  readonly isSparse: boolean;

  constructor(type: StructType, fields: ReadonlyMap<string, CelValue>, isSparse = false) {
    this.type = type;
    this.fields = fields;
    this.isSparse = isSparse;
  }
}

/** What `type(x)` gives, and names of types. */
export class TypeValue {
  readonly name: string;

  constructor(name: string) {
    this.name = name;
  }
}

/** An expression that has no value for what it was given; `||`, `&&` and macros may do without it. */
export class CelFailure extends Error {}

/** Whether a value is a list. */
export function isList(value: CelValue): value is readonly CelValue[] {
  return Array.isArray(value);
}

/** Numbers that are equal are one key, whatever their kind. */
function keyText(key: CelValue): string {
  if (isCelUint(key)) return `number ${String(key.value)}`;
  if (typeof key === 'bigint' || typeof key === 'number') return `number ${String(key)}`;
  if (typeof key === 'string' || typeof key === 'boolean') return `${typeof key} ${String(key)}`;
  throw new CelFailure('unsupported key type');
}

/** The value of a field that is not set. */
export function zeroOf(type: FieldType, schema: Schema, epoch: TimeValue): CelValue {
  switch (type.kind) {
    case 'struct':
      return new StructValue(schema.struct(type.name), new Map());
    case 'list':
      return [];
    case 'map':
      return new MapValue([]);
    case 'string':
      return '';
    case 'bool':
      return false;
    case 'bytes':
      return new Uint8Array();
    case 'timestamp':
      return epoch;
    case 'int':
      return 0n;
    case 'uint':
      return ZERO_UINT;
  }
}
