import { parseJson, renderGoString, renderJson } from '../json/lossless.ts';
import { type FieldType, type ValueOf, wrongKind } from './field-types.ts';

/** The object of a struct: every field is there. */
export type ObjectOf<F> = { readonly [K in keyof F]: ValueOf<F[K]> };

/** A JSON document of the wire. */
export interface Payload<T> {
  /** @throws {VmModelError} `InvalidJson`, with Go's words. */
  parse(text: string): T;
  render(value: T): string;
  /** What Go has before anything is set. */
  zero(): T;
}

/** Reads and prints as Go does where the type at hand does not matter. */
type AnyField = FieldType<unknown>;

/**
 * A Go struct.
 *
 * Reading takes keys in the exact case only, as KubeVirt does from v0.50 on; null leaves a field at its zero value; what
 * is missing is zero. Keys that are not known stay in the object and are printed after the known ones.
 *
 * @param goType the type as Go's error texts name it where they give its package: `v1alpha1.BackupOptions`.
 */
export function struct<const F extends Readonly<Record<string, unknown>>>(
  name: string,
  fields: F,
  goType: string = name,
): FieldType<ObjectOf<F>> {
  const entries = Object.entries(fields) as (readonly [string, AnyField])[];
  const zero = (): Record<string, unknown> => Object.fromEntries(entries.map(([key, type]) => [key, type.zero()]));
  return {
    goType,
    zero: () => zero() as ObjectOf<F>,
    read: (value, at) => {
      if (typeof value !== 'object' || value === null || Array.isArray(value)) throw wrongKind(goType, value, at);
      const given = value as Readonly<Record<string, unknown>>;
      const out = zero();
      for (const [key, type] of entries) {
        const raw = Object.hasOwn(given, key) ? given[key] : undefined;
        if (raw !== undefined && raw !== null) out[key] = type.read(raw, `${name}.${key}`);
      }
      return { ...out, ...unknownOf(given, fields) } as ObjectOf<F>;
    },
    render: (value) => renderObject(value, entries, fields),
    isEmpty: () => false,
  };
}

function unknownOf(given: Readonly<Record<string, unknown>>, fields: object): Record<string, unknown> {
  return Object.fromEntries(Object.entries(given).filter(([key]) => !Object.hasOwn(fields, key)));
}

function renderObject(
  value: Readonly<Record<string, unknown>>,
  entries: readonly (readonly [string, AnyField])[],
  fields: object,
): string {
  const known = entries.flatMap(([key, type]) => {
    const item = value[key] ?? type.zero();
    return type.omitsEmpty === true && type.isEmpty(item) ? [] : [`${renderGoString(key)}:${type.render(item)}`];
  });
  const unknown = Object.entries(unknownOf(value, fields)).map(
    ([key, item]) => `${renderGoString(key)}:${renderJson(item)}`,
  );
  return `{${[...known, ...unknown].join(',')}}`;
}

/** The place of a document's root, which has no field. */
const ROOT = '';

/** The document whose root is of a type. */
export function payload<T>(type: FieldType<T>): Payload<T> {
  return {
    zero: () => type.zero(),
    render: (value) => type.render(value),
    parse: (source) => {
      const value = parseJson(source);
      return value === null ? type.zero() : type.read(value, ROOT);
    },
  };
}
