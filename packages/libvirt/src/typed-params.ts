import { LibvirtError } from './errors.ts';
import { PARAM_TYPES } from './gen/constants.gen.ts';

/** Value types of a typed parameter, in the order of their wire numbers 1 to 7. */
export const TYPED_PARAM_TYPES = ['int', 'uint', 'llong', 'ullong', 'double', 'boolean', 'string'] as const;

/** Wire type of a typed parameter's value. */
export type TypedParamType = (typeof TYPED_PARAM_TYPES)[number];

/** A typed parameter's value: bigint for llong and ullong, number for int, uint and double. */
export type TypedParamValue = number | bigint | boolean | string;

/** One typed parameter as on the wire. A name that occurs more than once is how libvirt sends a list. */
export interface TypedParam {
  readonly field: string;
  readonly type: TypedParamType;
  readonly value: TypedParamValue;
}

/** A received list of typed parameters, with look-up by name. */
export class TypedParams implements Iterable<TypedParam> {
  readonly list: readonly TypedParam[];
  #byName: Map<string, TypedParam> | undefined;

  constructor(list: readonly TypedParam[]) {
    this.list = list;
  }

  [Symbol.iterator](): Iterator<TypedParam> {
    return this.list[Symbol.iterator]();
  }

  /** The value of the first parameter of this name, or undefined. */
  get(name: string): TypedParamValue | undefined {
    return this.#find(name)?.value;
  }

  /** All values of a name, in order. */
  all(name: string): readonly TypedParamValue[] {
    return this.list.filter((param) => param.field === name).map((param) => param.value);
  }

  /** An integer of whatever width as bigint; undefined if absent or not an integer. */
  bigint(name: string): bigint | undefined {
    const value = this.get(name);
    if (typeof value === 'bigint') return value;
    return typeof value === 'number' && Number.isInteger(value) ? BigInt(value) : undefined;
  }

  /** A number of whatever type; 64-bit values past 2^53 lose their low bits. */
  number(name: string): number | undefined {
    const value = this.get(name);
    return typeof value === 'bigint' || typeof value === 'boolean'
      ? Number(value)
      : typeof value === 'number'
        ? value
        : undefined;
  }

  /** A text; undefined if absent or of another type. */
  text(name: string): string | undefined {
    const value = this.get(name);
    return typeof value === 'string' ? value : undefined;
  }

  /** A boolean, also when the daemon sends it as a number; undefined if absent or a text. */
  boolean(name: string): boolean | undefined {
    const value = this.get(name);
    return value === undefined || typeof value === 'string' ? undefined : Boolean(value);
  }

  /** Name to value; of a repeated name the first value. */
  toObject(): Record<string, TypedParamValue> {
    const out: Record<string, TypedParamValue> = {};
    for (const { field, value } of this.list) if (!Object.hasOwn(out, field)) out[field] = value;
    return out;
  }

  #find(name: string): TypedParam | undefined {
    if (this.#byName === undefined) {
      this.#byName = new Map();
      for (const param of this.list) if (!this.#byName.has(param.field)) this.#byName.set(param.field, param);
    }
    return this.#byName.get(name);
  }
}

/** Values by parameter name; an array becomes a repeated parameter; undefined is left out. */
export type TypedParamInput = Readonly<Record<string, TypedParamValue | readonly TypedParamValue[] | undefined>>;

/**
 * Builds a parameter list for a call. The daemon takes a parameter only with the exact wire type it knows for the
 * name, so the type comes from libvirt's own table; a name outside it gets the type of its value (bigint ullong,
 * integer int, other number double).
 *
 * @throws {LibvirtError} `InvalidArgument` when a value does not fit the name's type.
 */
export function typedParams(input: TypedParamInput): TypedParam[] {
  return Object.entries(input).flatMap(([field, value]) => {
    if (value === undefined) return [];
    const values = Array.isArray(value) ? (value as readonly TypedParamValue[]) : [value as TypedParamValue];
    return values.map((one) => convert(field, typeOf(field) ?? typeByValue(one), one));
  });
}

function typeOf(field: string): TypedParamType | undefined {
  const name = field.replace(/\d+$/, '%u');
  return TYPED_PARAM_TYPES.find((type) => {
    const names = ` ${PARAM_TYPES[type]} `;
    return names.includes(` ${field} `) || names.includes(` ${name} `);
  });
}

function typeByValue(value: TypedParamValue): TypedParamType {
  if (typeof value === 'bigint') return 'ullong';
  if (typeof value === 'boolean') return 'boolean';
  if (typeof value === 'string') return 'string';
  return Number.isInteger(value) ? 'int' : 'double';
}

function convert(field: string, type: TypedParamType, value: TypedParamValue): TypedParam {
  const wrong = (): never => {
    throw LibvirtError.client('InvalidArgument', `typed parameter ${field}: ${typeof value} given, ${type} wanted`);
  };
  switch (type) {
    case 'string':
      return typeof value === 'string' ? { field, type, value } : wrong();
    case 'boolean':
      return typeof value === 'string' ? wrong() : { field, type, value: Boolean(value) };
    case 'llong':
    case 'ullong':
      return typeof value === 'bigint' || (typeof value === 'number' && Number.isSafeInteger(value))
        ? { field, type, value: BigInt(value) }
        : wrong();
    case 'double':
      return typeof value === 'number' ? { field, type, value } : wrong();
    case 'int':
    case 'uint':
      return typeof value === 'number' || typeof value === 'bigint' ? { field, type, value: Number(value) } : wrong();
  }
}
