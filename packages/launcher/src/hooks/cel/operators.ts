import { isCelUint } from '@bufbuild/cel';
import type { Functions } from './functions.ts';
import type { CelValue } from './values.ts';
import { CelFailure, isList, MapValue, StructValue, TypeValue } from './values.ts';

/** Whether a value is one of the library's, which its functions compare. */
function isScalar(value: CelValue): boolean {
  return !isList(value) && !(value instanceof MapValue || value instanceof StructValue || value instanceof TypeValue);
}

/**
 * Whether two values are equal; values of different kinds are not, but numbers are.
 *
 * @throws {CelFailure} for structs that an expression made, which cel-go's launcher does not compare either.
 */
export function isEqual(functions: Functions, a: CelValue, b: CelValue): boolean {
  if (a instanceof StructValue && a.isSparse) throw new CelFailure(`Equal not supported for ${a.type.celName}`);
  if (isScalar(a) && isScalar(b)) return functions.call('_==_', undefined, [a, b]) === true;
  if (isList(a)) {
    return isList(b) && a.length === b.length && a.every((value, i) => isEqual(functions, value, b[i] ?? null));
  }
  if (a instanceof MapValue) {
    return (
      b instanceof MapValue &&
      a.size === b.size &&
      a.keys().every((key) => b.has(key) && isEqual(functions, a.get(key) ?? null, b.get(key) ?? null))
    );
  }
  if (a instanceof TypeValue) return b instanceof TypeValue && a.name === b.name;
  return a instanceof StructValue && b instanceof StructValue && isSameStruct(functions, a, b);
}

function isSameStruct(functions: Functions, a: StructValue, b: StructValue): boolean {
  if (a.type !== b.type || b.isSparse || a.fields.size !== b.fields.size) return false;
  return [...a.fields].every(([name, value]) => {
    const other = b.fields.get(name);
    return other !== undefined && isEqual(functions, value, other);
  });
}

/** `a + b` of lists; `undefined` when they are none. */
export function concatenate(a: CelValue, b: CelValue): readonly CelValue[] | undefined {
  return isList(a) && isList(b) ? [...a, ...b] : undefined;
}

/** `list[index]` and `map[key]`. @throws {CelFailure} when there is nothing. */
export function index(container: CelValue, key: CelValue): CelValue {
  if (isList(container)) {
    const place = integerOf(key);
    if (place === undefined) throw new CelFailure(`unsupported index type in list: ${typeName(key)}`);
    const value = container[Number(place)];
    if (place < 0n || value === undefined) throw new CelFailure(`index out of bounds: ${String(place)}`);
    return value;
  }
  if (!(container instanceof MapValue)) throw new CelFailure('no such overload');
  const value = container.get(key);
  if (value === undefined) throw new CelFailure(`no such key: ${textOfKey(key)}`);
  return value;
}

/** What `key in container` says. */
export function isIn(functions: Functions, key: CelValue, container: CelValue): boolean {
  if (isList(container)) return container.some((value) => isEqual(functions, value, key));
  if (container instanceof MapValue) return container.has(key);
  throw new CelFailure('no such overload');
}

function integerOf(value: CelValue): bigint | undefined {
  if (isCelUint(value)) return value.value;
  if (typeof value === 'number') return Number.isInteger(value) ? BigInt(value) : undefined;
  return typeof value === 'bigint' ? value : undefined;
}

function textOfKey(key: CelValue): string {
  const number = isCelUint(key) ? key.value : key;
  return typeof number === 'object' ? typeName(key) : String(number);
}

/** The name of a value's type, as `type()` has it. */
export function typeName(value: CelValue): string {
  switch (typeof value) {
    case 'string':
      return 'string';
    case 'bigint':
      return 'int';
    case 'number':
      return 'double';
    case 'boolean':
      return 'bool';
    default:
      break;
  }
  if (value === null) return 'null_type';
  if (isCelUint(value)) return 'uint';
  if (isList(value)) return 'list';
  if (value instanceof Uint8Array) return 'bytes';
  if (value instanceof MapValue) return 'map';
  if (value instanceof TypeValue) return 'type';
  return value instanceof StructValue ? value.type.celName : value.desc.typeName;
}
