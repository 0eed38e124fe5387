import { isCelUint } from '@bufbuild/cel';
import type { Field, FieldType, IntegerType, Schema, StructType } from './schema.ts';
import type { CelValue } from './values.ts';
import { CelFailure, isList, StructValue } from './values.ts';

/**
 * Puts what an expression made over a Go struct: structs are merged field by field, lists replaced as a whole, `null` takes
 * a field away. The base stays as it is.
 *
 * @throws {CelFailure} when a value does not fit into its field.
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/plugins/cel/deepmerge.go
 */
export function mergeStruct(schema: Schema, base: StructValue, made: StructValue): StructValue {
  let merged = base;
  for (const [name, value] of made.fields) {
    const path = base.type.find(name);
    if (path === undefined) throw new CelFailure(`cannot set field ${name} on ${base.type.name}`);
    merged = withField(schema, merged, path, value);
  }
  return merged;
}

function withField(schema: Schema, base: StructValue, path: readonly Field[], value: CelValue): StructValue {
  const [field, ...rest] = path;
  if (field === undefined) return base;
  const before = base.fields.get(field.name);
  const after =
    rest.length === 0
      ? converted(schema, base.type, field, value, before)
      : withField(schema, structOr(schema, field.type, before), rest, value);
  const fields = new Map(base.fields);
  if (after === undefined || (!field.isPointer && isZero(after))) fields.delete(field.name);
  else fields.set(field.name, after);
  return new StructValue(base.type, fields);
}

function structOr(schema: Schema, type: FieldType, value: CelValue | undefined): StructValue {
  if (value instanceof StructValue) return value;
  if (type.kind !== 'struct') throw new CelFailure('no struct');
  return new StructValue(schema.struct(type.name), new Map());
}

function converted(
  schema: Schema,
  owner: StructType,
  field: Field,
  value: CelValue,
  before: CelValue | undefined,
): CelValue | undefined {
  if (value === null) return undefined;
  return told(`setting field ${field.name} on ${owner.name}`, () => toNative(schema, field.type, value, before));
}

function told<T>(doing: string, work: () => T): T {
  try {
    return work();
  } catch (caught) {
    if (!(caught instanceof CelFailure)) throw caught;
    throw new CelFailure(`${doing}: ${caught.message}`);
  }
}

function toNative(schema: Schema, type: FieldType, value: CelValue, before: CelValue | undefined): CelValue {
  switch (type.kind) {
    case 'struct': {
      const isSame = value instanceof StructValue && value.type.name === type.name;
      if (isSame) return value.isSparse ? mergeStruct(schema, structOr(schema, type, before), value) : value;
      break;
    }
    case 'list':
      if (!isList(value)) throw new CelFailure('list value does not support iteration');
      return value.map((element) =>
        told('converting list element', () => toNative(schema, type.of, element, undefined)),
      );
    case 'string':
      if (typeof value === 'string') return value;
      break;
    case 'bool':
      if (typeof value === 'boolean') return value;
      break;
    case 'int':
      if (typeof value === 'bigint') return inRange(type, value, value);
      break;
    case 'uint':
      if (isCelUint(value)) return inRange(type, value.value, value);
      break;
    default:
      break;
  }
  throw new CelFailure(`converting to ${nameOf(type)}: type conversion error`);
}

function inRange({ kind, bits }: IntegerType, number: bigint, value: CelValue): CelValue {
  const fits = kind === 'int' ? BigInt.asIntN(bits, number) === number : BigInt.asUintN(bits, number) === number;
  if (!fits) throw new CelFailure(`converting to ${kind}${bits}: integer overflow`);
  return value;
}

function nameOf(type: FieldType): string {
  return type.kind === 'struct' ? `libvirtxml.${type.name}` : type.kind;
}

function isZero(value: CelValue): boolean {
  if (value instanceof StructValue) return value.fields.size === 0;
  return value === '' || value === false || value === 0n || (isCelUint(value) && value.value === 0n);
}
