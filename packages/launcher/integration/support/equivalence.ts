/** What an RPC answered, as captures show it. */
export interface Answer {
  /** The text of a failure, whichever way it travelled. */
  readonly failure: string | undefined;
  /** Fields beside the outcome; JSON that they hold as JSON. */
  readonly fields: Readonly<Record<string, unknown>>;
}

const VARYING: readonly (readonly [RegExp, string])[] = [
  [/\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)? \+0000 UTC( m=\+[\d.]+)?/g, 'TIME'],
  [/guest pid \[\d+\]/g, 'guest pid [N]'],
];

/** A text without what is another one each time. */
export function withoutVarying(text: string | undefined): string | undefined {
  return VARYING.reduce((rest, [pattern, word]) => rest?.replaceAll(pattern, word), text);
}

function kindOf(value: unknown): string {
  if (value === null || typeof value !== 'object') return value === null ? 'null' : typeof value;
  return Array.isArray(value) ? 'list' : 'object';
}

/** The members of a value with their places; of a list all at one place. */
function membersOf(value: unknown, place: string): readonly (readonly [string, unknown])[] {
  if (Array.isArray(value)) return value.map((item: unknown) => [`${place}[]`, item]);
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).map(([key, item]) => [place === '' ? key : `${place}.${key}`, item]);
}

/** Places of a document with the kinds of what stands there: `Spec.Devices.Disks[].Target.Device: string`. */
function shapeOf(value: unknown, place = ''): ReadonlySet<string> {
  const members = membersOf(value, place).flatMap(([at, item]) => [...shapeOf(item, at)]);
  return new Set([`${place}: ${kindOf(value)}`, ...members]);
}

/** What one document has and the other lacks. */
export function shapeDifferences(recorded: unknown, ours: unknown): readonly string[] {
  const [expected, actual] = [shapeOf(recorded), shapeOf(ours)];
  const missing = [...expected].filter((place) => !actual.has(place)).map((place) => `- ${place}`);
  return [...missing, ...[...actual].filter((place) => !expected.has(place)).map((place) => `+ ${place}`)];
}

/** Where two documents differ, each with both values. */
export function valueDifferences(recorded: unknown, ours: unknown, place = ''): readonly string[] {
  const isInner = kindOf(recorded) === kindOf(ours) && ['list', 'object'].includes(kindOf(recorded));
  if (!isInner) {
    const [expected, actual] = [JSON.stringify(recorded), JSON.stringify(ours)];
    return expected === actual ? [] : [`${place}: ${expected} / ${actual}`];
  }
  const [a, b] = [recorded, ours] as readonly Readonly<Record<string, unknown>>[];
  const keys = new Set([...Object.keys(a ?? {}), ...Object.keys(b ?? {})]);
  return [...keys].flatMap((key) => valueDifferences(a?.[key], b?.[key], place === '' ? key : `${place}.${key}`));
}
