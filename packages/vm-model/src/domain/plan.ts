import { DOMAIN_TABLE } from '../gen/domain-table.gen.ts';

/** How a value is encoded. */
export type Kind =
  'string' | 'bool' | 'int32' | 'int' | 'int64' | 'uint32' | 'uint' | 'uint64' | 'Time' | 'map' | 'raw' | 'struct';

/** Where a value stands in the XML of its parent element. */
type XmlPlace =
  | { readonly kind: 'none' | 'text' }
  | { readonly kind: 'attribute'; readonly name: string }
  | { readonly kind: 'element'; readonly name: string; readonly parents: readonly string[] };

/** One field of a type of the domain object. */
export interface FieldPlan {
  readonly key: string;
  readonly goType: string;
  readonly kind: Kind;
  readonly isList: boolean;
  readonly isPointer: boolean;
  /** Set when `kind` is `struct`. */
  readonly type: string;
  readonly jsonOmitEmpty: boolean;
  readonly xmlAlways: boolean;
  readonly xml: XmlPlace;
  readonly xmlNamespace: string | undefined;
}

/** One type of the domain object; `fields` are in key order. */
export interface TypePlan {
  readonly name: string;
  readonly fields: readonly FieldPlan[];
  readonly byKey: ReadonlyMap<string, FieldPlan>;
  readonly attributes: readonly FieldPlan[];
  /** Text and elements, in the order in which they are written. */
  readonly content: readonly FieldPlan[];
  /** The element name that `XMLName` holds after parsing, for the types that have one. */
  readonly xmlName: string | undefined;
}

type Row = readonly [key: string, goType: string, xml?: string, flags?: string, namespace?: string];

const SCALARS: ReadonlySet<string> = new Set<Kind>([
  'string',
  'bool',
  'int32',
  'int',
  'int64',
  'uint32',
  'uint',
  'uint64',
  'Time',
  'map',
]);

function placeOf(xml: string): XmlPlace {
  if (xml === '') return { kind: 'none' };
  if (xml === 'text()') return { kind: 'text' };
  if (xml.startsWith('@')) return { kind: 'attribute', name: xml.slice(1) };
  const path = xml.split('/');
  return { kind: 'element', name: path.at(-1) ?? '', parents: path.slice(0, -1) };
}

function fieldPlan([key, goType, xml = '', flags = '', namespace]: Row): FieldPlan {
  const base = goType.replace(/^(\[\]|\*)/, '');
  const kind = SCALARS.has(base) ? (base as Kind) : base === 'FieldsV1' ? 'raw' : 'struct';
  return {
    key,
    goType,
    kind,
    isList: goType.startsWith('[]'),
    isPointer: goType.startsWith('*'),
    type: kind === 'struct' ? base : '',
    jsonOmitEmpty: flags.includes('j'),
    xmlAlways: flags.includes('x'),
    // XMLName names the element itself; it is no value inside it.
    xml: key === 'XMLName' ? { kind: 'none' } : placeOf(xml),
    xmlNamespace: namespace,
  };
}

function typePlan(name: string, rows: readonly Row[]): TypePlan {
  const fields = rows.map(fieldPlan);
  return {
    name,
    fields,
    byKey: new Map(fields.map((field) => [field.key, field])),
    attributes: fields.filter((field) => field.xml.kind === 'attribute'),
    content: fields.filter((field) => field.xml.kind === 'text' || field.xml.kind === 'element'),
    xmlName: rows.find(([key]) => key === 'XMLName')?.[2],
  };
}

const PLANS: ReadonlyMap<string, TypePlan> = new Map(
  Object.entries(DOMAIN_TABLE).map(([name, rows]) => [name, typePlan(name, rows)]),
);
const EMPTY: TypePlan = typePlan('', []);

/** The plan of a type that the table names. */
export function planOf(type: string): TypePlan {
  return PLANS.get(type) ?? EMPTY;
}
