import fc from 'fast-check';

/** One change of a JSON document: a value anywhere in it, picked by a number, becomes another one or goes. */
export interface JsonChange {
  readonly at: number;
  readonly value: unknown;
}

const REMOVED = Symbol('removed');

/** Values that no field expects, or expects too little of. */
const value = fc.oneof(
  fc.constantFrom<unknown>(
    REMOVED,
    null,
    true,
    false,
    '',
    'x',
    0,
    -1,
    1.5,
    4_294_967_295,
    2 ** 53,
    1e300,
    [],
    [null],
    {},
    { name: null },
    [{}],
    [[]],
    '0',
    '-1',
    '1e99',
    '1Mi',
    '64Megs',
    'host-model',
    'auto',
    'supplementalPool',
    'scsi',
    '0000:00:00.0',
    '__proto__',
  ),
  fc.string({ maxLength: 8 }),
  fc.jsonValue({ maxDepth: 2 }),
);

/** Some changes in a row. */
export const jsonChanges: fc.Arbitrary<readonly JsonChange[]> = fc.array(
  fc.record({ at: fc.nat({ max: 1_000_000 }), value }),
  { minLength: 1, maxLength: 4 },
);

interface Place {
  readonly holder: Record<string, unknown> | unknown[];
  readonly key: string;
}

/** Carries changes out on a copy. */
export function changeJson(document: unknown, changes: readonly JsonChange[]): unknown {
  const copy = { document: structuredClone(document) };
  for (const { at, value: next } of changes) {
    const places = placesOf(copy);
    const place = places[at % places.length];
    if (place === undefined) continue;
    if (next === REMOVED) Reflect.deleteProperty(place.holder, place.key);
    else Reflect.set(place.holder, place.key, structuredClone(next));
  }
  return copy.document;
}

function placesOf(holder: object): readonly Place[] {
  return Object.entries(holder).flatMap(([key, item]: [string, unknown]) => [
    { holder: holder as Place['holder'], key },
    ...(typeof item === 'object' && item !== null ? placesOf(item) : []),
  ]);
}
