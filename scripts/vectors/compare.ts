import { renderJson } from '@virtwire/vm-model';

const MAX_VALUE_LENGTH = 120;

/**
 * Where two parsed JSON values differ, as `path: expected X, got Y`.
 *
 * Key order does not count; `null`, missing and `[]` do.
 */
export function diffJson(expected: unknown, actual: unknown, path = ''): readonly string[] {
  if (Array.isArray(expected) && Array.isArray(actual)) {
    const length = Math.max(expected.length, actual.length);
    return Array.from({ length }, (_, i) => diffJson(expected[i], actual[i], `${path}/${String(i)}`)).flat();
  }
  if (isObject(expected) && isObject(actual)) {
    const keys = new Set([...Object.keys(expected), ...Object.keys(actual)]);
    return [...keys].flatMap((key) => diffJson(expected[key], actual[key], `${path}/${key}`));
  }
  return isEqualScalar(expected, actual) ? [] : [`${path || '/'}: expected ${show(expected)}, got ${show(actual)}`];
}

/** Whether two JSON objects list the same keys in the same order, at every depth. */
export function diffKeyOrder(expected: unknown, actual: unknown, path = ''): readonly string[] {
  if (Array.isArray(expected) && Array.isArray(actual)) {
    return expected.flatMap((item, i) => diffKeyOrder(item, actual[i], `${path}/${String(i)}`));
  }
  if (!isObject(expected) || !isObject(actual)) return [];
  const [want, got] = [Object.keys(expected).join(), Object.keys(actual).join()];
  if (want !== got) return [`${path || '/'}: expected keys in order ${want}, got ${got}`];
  return Object.keys(expected).flatMap((key) => diffKeyOrder(expected[key], actual[key], `${path}/${key}`));
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isEqualScalar(a: unknown, b: unknown): boolean {
  if (typeof a === 'bigint' || typeof b === 'bigint') {
    return (typeof a === 'bigint' || typeof a === 'number') && String(a) === String(b);
  }
  return Object.is(a, b);
}

function show(value: unknown): string {
  const text = value === undefined ? 'nothing' : renderJson(value);
  return text.length > MAX_VALUE_LENGTH ? `${text.slice(0, MAX_VALUE_LENGTH)}…` : text;
}
