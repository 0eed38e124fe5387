/** One difference between two objects, as a JSON-pointer operation; lists are replaced as a whole. */
export interface Operation {
  readonly op: 'add' | 'remove' | 'replace';
  readonly path: string;
  readonly old?: unknown;
  readonly value?: unknown;
}

type Fields = Readonly<Record<string, unknown>>;

/** How `to` differs from `from`, ordered by path. Unset and null are the same. */
export function diffOperations(from: unknown, to: unknown, path = ''): readonly Operation[] {
  if (isObject(from) && isObject(to)) {
    const keys = [...new Set([...Object.keys(from), ...Object.keys(to)])].sort();
    return keys.flatMap((key) => diffOperations(from[key], to[key], `${path}/${escapePointer(key)}`));
  }
  const [old, value] = [from ?? undefined, to ?? undefined];
  if (isSame(old, value)) return [];
  if (old === undefined) return [{ op: 'add', path, value }];
  if (value === undefined) return [{ op: 'remove', path, old }];
  return [{ op: 'replace', path, old, value }];
}

/** Whether two JSON values are the same but for unset, null and empty objects, which Go's printing adds and drops. */
export function isSame(a: unknown, b: unknown): boolean {
  if (isBlank(a) || isBlank(b)) return isBlank(a) && isBlank(b);
  if (Array.isArray(a) && Array.isArray(b)) return a.length === b.length && a.every((item, i) => isSame(item, b[i]));
  if (isObject(a) && isObject(b)) {
    return [...new Set([...Object.keys(a), ...Object.keys(b)])].every((key) => isSame(a[key], b[key]));
  }
  if (typeof a === 'bigint' || typeof b === 'bigint') return String(a) === String(b);
  return Object.is(a, b);
}

function isBlank(value: unknown): boolean {
  if (value === undefined || value === null) return true;
  return isObject(value) && Object.values(value).every(isBlank);
}

export function isObject(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function escapePointer(key: string): string {
  return key.replaceAll('~', '~0').replaceAll('/', '~1');
}
