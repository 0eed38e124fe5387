import { VmModelError } from '../errors.ts';
import type { Domain, DomainSpec } from '../gen/domain-types.gen.ts';
import { parseJson } from '../json/lossless.ts';
import { formatGoTime } from '../time.ts';
import { fitsInteger } from './integers.ts';
import { type FieldPlan, planOf } from './plan.ts';
import { fillDomain, fillDomainSpec } from './zero.ts';

type Fields = Record<string, unknown>;

/** Where the reader is, for Go's error text. */
interface Position {
  readonly struct: string;
  readonly path: string;
}

/**
 * Reads the domain JSON of any KubeVirt release.
 *
 * The result is sparse: zero values are left out, except the objects that every domain has. Unknown keys are dropped,
 * `null` is a zero value, and both shapes of `OS.ACPI.Table` are taken.
 *
 * @throws {VmModelError} `InvalidJson` with Go's text when a value has the wrong type.
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/api/schema.go
 */
export function parseDomainJson(text: string): Domain {
  return fillDomain(readRoot('Domain', parseJson(text)));
}

/** Reads only the libvirt part of a domain. */
export function parseDomainSpecJson(text: string): DomainSpec {
  return fillDomainSpec(readRoot('DomainSpec', parseJson(text)));
}

function readRoot(type: string, value: unknown): Fields {
  if (value === null) return {};
  if (typeof value !== 'object' || Array.isArray(value)) {
    throw new VmModelError(
      'InvalidJson',
      `json: cannot unmarshal ${jsonKind(value)} into Go value of type api.${type}`,
    );
  }
  return readStruct(type, value as Fields, '');
}

function readStruct(type: string, value: Fields, path: string): Fields {
  const out: Fields = {};
  const plan = planOf(type);
  // In the order of the table, so that equal domains print alike and objects of one type share a shape.
  for (const field of plan.fields) {
    const raw = Object.hasOwn(value, field.key) ? value[field.key] : undefined;
    if (raw === undefined || raw === null) continue;
    const read = readField(field, raw, { struct: type, path: path === '' ? field.key : `${path}.${field.key}` });
    if (read !== undefined) out[field.key] = read;
  }
  return out;
}

function readField(field: FieldPlan, raw: unknown, at: Position): unknown {
  if (field.isList) {
    // Releases v1.2 to v1.5 print OS.ACPI.Table as one object.
    const list = field.type === 'ACPITable' && !Array.isArray(raw) ? [raw] : raw;
    if (!Array.isArray(list)) throw mismatch(field.goType, raw, at);
    return list.map((item: unknown) => (item === null ? zeroItem(field) : readOne(field, item, at)));
  }
  const read = readOne(field, raw, at);
  return !field.isPointer && isZero(read) ? undefined : read;
}

function zeroItem(field: FieldPlan): unknown {
  return field.kind === 'struct' ? {} : '';
}

function isZero(value: unknown): boolean {
  if (typeof value === 'object' && value !== null) return Object.keys(value).length === 0;
  return value === '' || value === 0 || value === false;
}

function readOne(field: FieldPlan, raw: unknown, at: Position): unknown {
  switch (field.kind) {
    case 'struct':
      if (typeof raw !== 'object' || Array.isArray(raw)) throw mismatch(itemType(field), raw, at);
      return readStruct(field.type, raw as Fields, at.path);
    case 'string':
      if (typeof raw !== 'string') throw mismatch(itemType(field), raw, at);
      return raw.toWellFormed();
    case 'bool':
      if (typeof raw !== 'boolean') throw mismatch(itemType(field), raw, at);
      return raw;
    case 'Time':
      if (typeof raw !== 'string') throw mismatch('string', raw, at);
      return formatGoTime(raw);
    case 'map':
      return readMap(raw, at);
    case 'raw':
      return raw;
    default:
      if (!fitsInteger(field.kind, raw)) throw mismatch(itemType(field), raw, at);
      return raw;
  }
}

function readMap(raw: unknown, at: Position): Record<string, string> {
  if (typeof raw !== 'object' || raw === null || Array.isArray(raw)) throw mismatch('map[string]string', raw, at);
  return Object.fromEntries(
    Object.entries(raw).map(([key, item]: [string, unknown]) => {
      if (item !== null && typeof item !== 'string') throw mismatch('string', item, at);
      return [key, item ?? ''];
    }),
  );
}

function itemType(field: FieldPlan): string {
  return field.kind === 'struct' ? `api.${field.type}` : field.kind;
}

function jsonKind(value: unknown): string {
  if (Array.isArray(value)) return 'array';
  if (typeof value === 'boolean') return 'bool';
  if (typeof value === 'bigint') return `number ${String(value)}`;
  return typeof value;
}

function mismatch(goType: string, raw: unknown, at: Position): VmModelError {
  const kind = typeof raw === 'number' && /^u?int/.test(goType) ? `number ${String(raw)}` : jsonKind(raw);
  const named = /^(\[\])[A-Z]/.test(goType) ? goType.replace('[]', '[]api.') : goType;
  return new VmModelError(
    'InvalidJson',
    `json: cannot unmarshal ${kind} into Go struct field ${at.struct}.${at.path} of type ${named}`,
  );
}
