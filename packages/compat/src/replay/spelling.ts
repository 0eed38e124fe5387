import type { Capture } from './captures.ts';
import { documentsOf } from './documents.ts';
import type { Flaw } from './recordings.ts';

/** How often each spelling of a key occurs, by its place in lower case. */
type Spellings = Map<string, Map<string, number>>;

/** A spelling counts as wrong when another one is so much more frequent. */
const MIN_RATIO = 2;
const MAX_DEPTH = 32;

/**
 * Keys of the JSON within messages that stand in another case than the same key of other messages: readers of KubeVirt
 * ignore them in silence.
 */
export function spellingProblems(captures: readonly Capture[]): readonly Flaw[] {
  const spellings: Spellings = new Map();
  const seen = captures.map((capture) => ({ path: capture.path, keys: keysOf(capture) }));
  for (const { keys } of seen) for (const [place, key] of keys) count(spellings, place, key);
  return seen.flatMap(({ path, keys }) => {
    const wrong = keys.find(([place, key]) => isRare(spellings, place, key));
    return wrong === undefined
      ? []
      : [{ path, problem: `the key ${wrong[0]}${wrong[1]} is in another case elsewhere` }];
  });
}

function count(spellings: Spellings, place: string, key: string): void {
  const at = `${place}${key}`.toLowerCase();
  const known = spellings.get(at) ?? new Map<string, number>();
  spellings.set(at, known.set(key, (known.get(key) ?? 0) + 1));
}

function isRare(spellings: Spellings, place: string, key: string): boolean {
  const known = spellings.get(`${place}${key}`.toLowerCase());
  if (known === undefined || known.size < 2) return false;
  const most = Math.max(...known.values());
  return (known.get(key) ?? 0) * MIN_RATIO <= most;
}

/** Each key of a call's documents once, with its place; items of lists share one. */
function keysOf(capture: Capture): readonly (readonly [place: string, key: string])[] {
  const keys = new Map<string, readonly [string, string]>();
  for (const { field, text } of documentsOf(capture)) collect(readJson(text), `${field}: `, 0, keys);
  return [...keys.values()];
}

function readJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

function collect(value: unknown, place: string, depth: number, keys: Map<string, readonly [string, string]>): void {
  if (typeof value !== 'object' || value === null || depth > MAX_DEPTH) return;
  if (Array.isArray(value)) {
    for (const item of value) collect(item, place, depth + 1, keys);
    return;
  }
  for (const [key, item] of Object.entries(value)) {
    keys.set(`${place}${key}`, [place, key]);
    collect(item, `${place}${key}.`, depth + 1, keys);
  }
}
