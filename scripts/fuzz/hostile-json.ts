import type { Random } from './random.ts';

const MAX_CHANGES = 4;
const REMOVED = Symbol('removed');
/** Values that no field expects, or expects too little of. Paths that lead elsewhere are tested where files are made. */
const VALUES: readonly unknown[] = [
  REMOVED,
  ...[null, true, false, '', 'x', '\u0000', '\ud800', '__proto__', '<&"]]>'],
  ...[0, -1, 1.5, 4_294_967_295, 2 ** 53, -(2 ** 63), 1e300],
  ...['0', '-1', '1e99', '1Mi', '64Megs', '99999999999Ei', '2026-01-01T00:00:00Z', '0000:00:00.0'],
  ...['auto', 'host-model', 'Push', 'Pull', 'Start', 'Abort', 'virtio', 'scsi'],
  ...[[], [null], [{}], [[]], {}, { name: null }, { a: { a: { a: {} } } }],
];

interface Place {
  readonly holder: object;
  readonly key: string;
}

/** A copy of a document with a few values anywhere in it replaced or removed, or repeated, sometimes the whole of it. */
export function hostileJson(document: unknown, random: Random): unknown {
  const root = { document: structuredClone(document) };
  for (let i = random.below(MAX_CHANGES + 1); i > 0; i -= 1) {
    const { holder, key } = random.pick(placesOf(root));
    const value = random.pick(random.below(2) === 0 ? VALUES : alike(Reflect.get(holder, key)));
    if (Array.isArray(holder) && random.below(4) === 0) holder.push(structuredClone(holder[Number(key)]));
    else if (value === REMOVED) Reflect.deleteProperty(holder, key);
    else Reflect.set(holder, key, structuredClone(value));
    if (placesOf(root).length === 0) return undefined;
  }
  return root.document;
}

/** Values that a reader takes in the place of this one. */
function alike(value: unknown): readonly unknown[] {
  const found = VALUES.filter((one) => typeof one === typeof value && Array.isArray(one) === Array.isArray(value));
  return found.length === 0 ? VALUES : found;
}

function placesOf(holder: object): readonly Place[] {
  return Object.entries(holder).flatMap(([key, item]: [string, unknown]) => [
    { holder, key },
    ...(typeof item === 'object' && item !== null ? placesOf(item) : []),
  ]);
}
