import { VmModelError } from '../errors.ts';
import type { Domain, DomainSpec } from '../gen/domain-types.gen.ts';
import { renderGoString, renderJson } from '../json/lossless.ts';
import { formatGoTime, ZERO_TIME } from '../time.ts';
import { type FieldPlan, planOf } from './plan.ts';

type Fields = Readonly<Record<string, unknown>>;

const ZERO: Fields = {};

/** How a domain is printed for peers of other releases. */
export interface DomainJsonOptions {
  /** Prints an `OS.ACPI.Table` of one entry as an object, as KubeVirt v1.2 to v1.5 read it. */
  readonly isAcpiTableObject?: boolean;
}

/**
 * Prints a domain as Go's encoding/json prints KubeVirt's `api.Domain`: every key in declaration order, empty ones too.
 *
 * @throws {VmModelError} `InvalidValue` when a value does not fit its field.
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/api/schema.go
 */
export function renderDomainJson(domain: Domain, options: DomainJsonOptions = {}): string {
  const fields = domain as unknown as Fields;
  const tables = domain.Spec.OS.ACPI?.Table ?? [];
  if (options.isAcpiTableObject !== true || tables.length !== 1) return renderStruct('Domain', fields);
  const list = `"ACPI":{"Table":[${renderStruct('ACPITable', tables[0] as Fields)}]`;
  // Quotes within strings are escaped, so the text stands nowhere else than in Spec.OS.
  return renderStruct('Domain', fields).replace(list, () => list.replace('[', '').slice(0, -1));
}

/** Prints only the libvirt part of a domain, in the same form. */
export function renderDomainSpecJson(spec: DomainSpec): string {
  return renderStruct('DomainSpec', spec as unknown as Fields);
}

function renderStruct(type: string, value: Fields): string {
  let out = '{';
  for (const field of planOf(type).fields) {
    const text = renderField(field, value[field.key]);
    if (text === undefined) continue;
    out += `${out.length > 1 ? ',' : ''}"${field.key}":${text}`;
  }
  return `${out}}`;
}

function renderField(field: FieldPlan, value: unknown): string | undefined {
  if (field.jsonOmitEmpty && isEmpty(field, value)) return undefined;
  if (field.isList) return renderList(field, value);
  if (value === undefined || value === null) return zeroOf(field);
  return renderOne(field, value);
}

function renderList(field: FieldPlan, value: unknown): string {
  if (value === undefined || value === null) return 'null';
  if (!Array.isArray(value)) throw mismatch(field, value);
  return `[${value.map((item: unknown) => renderOne(field, item ?? zeroItem(field))).join(',')}]`;
}

function zeroItem(field: FieldPlan): unknown {
  return field.kind === 'struct' ? ZERO : '';
}

function zeroOf(field: FieldPlan): string {
  if (field.isPointer || field.kind === 'map' || field.kind === 'raw' || field.kind === 'Time') return 'null';
  if (field.kind === 'struct') return renderStruct(field.type, ZERO);
  if (field.kind === 'string') return '""';
  return field.kind === 'bool' ? 'false' : '0';
}

function isEmpty(field: FieldPlan, value: unknown): boolean {
  if (value === undefined || value === null) return true;
  if (field.isList) return Array.isArray(value) && value.length === 0;
  if (field.kind === 'map') return Object.keys(value).length === 0;
  return !field.isPointer && (value === '' || value === 0 || value === 0n || value === false);
}

function renderOne(field: FieldPlan, value: unknown): string {
  switch (field.kind) {
    case 'struct':
      if (typeof value !== 'object') throw mismatch(field, value);
      return renderStruct(field.type, value as Fields);
    case 'string':
      if (typeof value !== 'string') throw mismatch(field, value);
      return renderGoString(value);
    case 'Time':
      if (typeof value !== 'string') throw mismatch(field, value);
      return renderGoTime(value);
    case 'bool':
      if (typeof value !== 'boolean') throw mismatch(field, value);
      return String(value);
    case 'map':
      return renderMap(field, value);
    case 'raw':
      return renderJson(value);
    default:
      if (typeof value !== 'bigint' && !Number.isSafeInteger(value)) throw mismatch(field, value);
      return String(value);
  }
}

function renderGoTime(value: string): string {
  const time = formatGoTime(value);
  return time === ZERO_TIME ? 'null' : renderGoString(time);
}

/** Go sorts the keys of a map by their bytes. */
function renderMap(field: FieldPlan, value: unknown): string {
  if (typeof value !== 'object' || value === null) throw mismatch(field, value);
  const entries = Object.entries(value as Readonly<Record<string, unknown>>).map(([key, item]) => {
    if (typeof item !== 'string') throw mismatch(field, item);
    return { bytes: Buffer.from(key), text: `${renderGoString(key)}:${renderGoString(item)}` };
  });
  entries.sort((a, b) => Buffer.compare(a.bytes, b.bytes));
  return `{${entries.map((entry) => entry.text).join(',')}}`;
}

function mismatch(field: FieldPlan, value: unknown): VmModelError {
  return new VmModelError('InvalidValue', `${field.key} of type ${field.goType} cannot hold ${String(value)}`);
}
