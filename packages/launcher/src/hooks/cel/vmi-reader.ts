import { celUint } from '@bufbuild/cel';
import type { Functions } from './functions.ts';
import type { Field, FieldType, Schema, StructType } from './schema.ts';
import { VMI_TYPE } from './schema.ts';
import type { CelValue } from './values.ts';
import { MapValue, StructValue } from './values.ts';

type JsonObject = Readonly<Record<string, unknown>>;

/** Reads a VMI from its JSON, as Go does; values of another kind than their fields are left out. */
export function readVmi(schema: Schema, functions: Functions, json: unknown): StructValue {
  return new Reader(schema, functions).struct(schema.struct(VMI_TYPE), isObject(json) ? json : {});
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

class Reader {
  readonly #schema: Schema;
  readonly #functions: Functions;

  constructor(schema: Schema, functions: Functions) {
    this.#schema = schema;
    this.#functions = functions;
  }

  struct(type: StructType, json: JsonObject): StructValue {
    const fields = new Map<string, CelValue>();
    for (const field of type.fields) {
      const value = this.#field(field, json);
      if (value !== undefined && (field.isPointer || !isZero(value))) fields.set(field.name, value);
    }
    return new StructValue(type, fields);
  }

  #field({ name, type, jsonKey, isEmbedded, isPointer }: Field, json: JsonObject): CelValue | undefined {
    if (!isEmbedded || jsonKey !== undefined) return this.#value(type, json[jsonKey ?? name]);
    if (type.kind !== 'struct') return undefined;
    const inner = this.struct(this.#schema.struct(type.name), json);
    return isPointer && isZero(inner) ? undefined : inner;
  }

  #value(type: FieldType, json: unknown): CelValue | undefined {
    if (json === undefined || json === null) return undefined;
    switch (type.kind) {
      case 'string':
        return typeof json === 'string' ? json : undefined;
      case 'bool':
        return typeof json === 'boolean' ? json : undefined;
      case 'int':
      case 'uint': {
        const number = integerOf(json);
        return number === undefined || type.kind === 'int' ? number : celUint(number);
      }
      case 'list':
        if (!Array.isArray(json)) return undefined;
        return json.map((element) => this.#value(type.of, element) ?? this.#empty(type.of));
      case 'map':
        if (!isObject(json)) return undefined;
        return new MapValue(
          Object.entries(json).map(
            ([key, value]) => [key, this.#value(type.of, value) ?? this.#empty(type.of)] as const,
          ),
        );
      case 'struct':
        return this.#structValue(this.#schema.struct(type.name), json);
      default:
        return undefined;
    }
  }

  #structValue(type: StructType, json: unknown): CelValue | undefined {
    switch (type.name) {
      case 'v1.Time':
        return typeof json === 'string' ? this.#time(type, json) : undefined;
      case 'resource.Quantity':
        return quantity(type, json);
      case 'intstr.IntOrString':
        return intOrString(type, json);
      default:
        return isObject(json) ? this.struct(type, json) : undefined;
    }
  }

  #time(type: StructType, text: string): StructValue {
    return new StructValue(type, new Map([['Time', this.#functions.call('timestamp', undefined, [text])]]));
  }

  #empty(type: FieldType): CelValue {
    return type.kind === 'struct' ? new StructValue(this.#schema.struct(type.name), new Map()) : '';
  }
}

function isZero(value: CelValue): boolean {
  return value === '' || value === false || value === 0n || (value instanceof StructValue && value.fields.size === 0);
}

/** Numbers of this package's JSON are numbers, or texts where they would lose digits. */
function integerOf(json: unknown): bigint | undefined {
  if (typeof json === 'bigint') return json;
  return typeof json === 'number' && Number.isInteger(json) ? BigInt(json) : undefined;
}

/** Of a quantity, expressions see its notation only; the amount is private in Go. */
function quantity(type: StructType, json: unknown): StructValue | undefined {
  if (typeof json !== 'string' && typeof json !== 'number') return undefined;
  const text = String(json);
  const notation = /[KMGTPE]i$/.test(text) ? 'BinarySI' : /[eE][+-]?\d+$/.test(text) ? 'DecimalExponent' : 'DecimalSI';
  return new StructValue(type, new Map([['Format', notation]]));
}

function intOrString(type: StructType, json: unknown): StructValue | undefined {
  if (typeof json === 'string')
    return new StructValue(
      type,
      new Map<string, CelValue>([
        ['Type', 1n],
        ['StrVal', json],
      ]),
    );
  const number = integerOf(json);
  return number === undefined ? undefined : new StructValue(type, new Map([['IntVal', number]]));
}
