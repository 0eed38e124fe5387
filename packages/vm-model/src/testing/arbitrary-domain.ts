import fc from 'fast-check';
import { type FieldPlan, planOf } from '../domain/plan.ts';

/** What may be generated: XML cannot tell an empty list from a missing one, and has no place for some fields. */
export type Target = 'json' | 'xml';

const MAX_DEPTH = 6;
/** Lost by Go's XML decoder too: their tags carry a prefix that it never matches. */
const LOST_IN_XML: ReadonlySet<string> = new Set(['XmlNS', 'QEMUCmd']);
const REQUIRED: Readonly<Record<string, readonly string[]>> = {
  Domain: ['ObjectMeta', 'Spec', 'Status'],
  DomainSpec: ['Memory', 'OS', 'Devices', 'Metadata', 'CPU'],
  OS: ['Type'],
  Metadata: ['KubeVirt'],
  DomainStatus: ['OSInfo', 'FSFreezeStatus'],
};

const TIME = fc.date({ min: new Date(0), max: new Date('2100-01-01'), noInvalidDate: true });
/** Characters that XML 1.0 can hold, with those that need escaping more often than by chance. */
const XML_TEXT = fc
  .array(
    fc.oneof(
      fc.constantFrom('&', '<', '>', '"', "'", '\t', '\n', '\r', ' ', ']]>', '\u2028', '\u0085'),
      fc.string({ unit: 'binary', maxLength: 3 }).map((text) => text.replace(/[^\t\n\r -\ud7ff\ue000-\ufffd]/g, '')),
    ),
    { maxLength: 4 },
  )
  .map((parts) => parts.join(''));
const JSON_TEXT = fc.string({ unit: 'binary', maxLength: 5 });

/** Sparse objects of a type of the domain, as the readers return them. */
export function arbitraryOf(type: string, target: Target, depth = 0): fc.Arbitrary<Record<string, unknown>> {
  const required = REQUIRED[type] ?? [];
  const plan = planOf(type);
  const model: Record<string, fc.Arbitrary<unknown>> = {};
  for (const field of plan.fields) {
    const isRequired = required.includes(field.key);
    if (target === 'xml' && !isXmlField(type, field)) continue;
    const isEmptyItem = field.kind === 'struct' && depth >= MAX_DEPTH && !isRequired;
    const value = isEmptyItem ? fc.constant(undefined) : valueOf(field, target, depth);
    model[field.key] = isRequired ? value : fc.option(value, { nil: undefined, freq: 2 });
  }
  if (target === 'xml' && plan.xmlName !== undefined) model['XMLName'] = fc.constant({ Local: plan.xmlName });
  return fc.record(model).map((record) => sparse(type, record));
}

function isXmlField(type: string, field: FieldPlan): boolean {
  if (type === 'Alias') return true;
  return field.xml.kind !== 'none' && !(type === 'DomainSpec' && LOST_IN_XML.has(field.key));
}

/** Leaves out what the readers leave out: zero values of plain fields. */
function sparse(type: string, record: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const required = REQUIRED[type] ?? [];
  const kept = planOf(type).fields.filter((field) => {
    const value = record[field.key];
    if (value === undefined) return false;
    if (field.isPointer || field.isList || required.includes(field.key)) return true;
    if (typeof value === 'object' && value !== null) return Object.keys(value).length > 0;
    return value !== '' && value !== 0 && value !== false;
  });
  return Object.fromEntries(kept.map((field) => [field.key, record[field.key]]));
}

function valueOf(field: FieldPlan, target: Target, depth: number): fc.Arbitrary<unknown> {
  if (field.isList) {
    return fc.array(oneOf(field, target, depth), {
      minLength: target === 'xml' || field.jsonOmitEmpty ? 1 : 0,
      maxLength: 2,
    });
  }
  return oneOf(field, target, depth);
}

function oneOf(field: FieldPlan, target: Target, depth: number): fc.Arbitrary<unknown> {
  switch (field.kind) {
    case 'struct':
      return arbitraryOf(field.type, target, depth + 1);
    case 'string':
      return target === 'xml' ? XML_TEXT.filter((text) => !text.startsWith('ua-')) : JSON_TEXT;
    case 'bool':
      return fc.boolean();
    case 'Time':
      return TIME.map((date) => `${date.toISOString().slice(0, 19)}Z`);
    case 'map':
      return fc.dictionary(JSON_TEXT, JSON_TEXT, { minKeys: 1, maxKeys: 3 });
    case 'raw':
      return fc.constantFrom<unknown>({ 'f:spec': {} }, [1], 'text', true);
    case 'uint64':
      return fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }).map(shortest);
    case 'int64':
      return fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }).map(shortest);
    case 'uint32':
      return fc.integer({ min: 0, max: 2 ** 32 - 1 });
    case 'int32':
      return fc.integer();
    case 'uint':
      return fc.maxSafeNat();
    case 'int':
      return fc.maxSafeInteger();
  }
}

function shortest(value: bigint): number | bigint {
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : value;
}
