import { VmModelError } from '../errors.ts';
import { goSyntaxError, isTooDeep } from './go-syntax-error.ts';

type Reviver = (key: string, value: unknown, context: { readonly source?: string }) => unknown;

const parseWithSource = JSON.parse as (text: string, reviver: Reviver) => unknown;
const jsonWithRaw = JSON as unknown as { rawJSON(text: string): object };
/** Only a text with so many digits in a row can hold an integer beyond 2^53; all others take the fast parser. */
const LONG_NUMBER = /\d{16}/;
const INTEGER = /^-?\d+$/;

/**
 * Parses JSON so that no integer loses digits: integers beyond 2^53 become bigint, everything else is as in JSON.parse.
 *
 * @throws {VmModelError} `InvalidJson` with the text of Go's encoding/json; also for nesting that exhausts the stack.
 */
export function parseJson(text: string): unknown {
  if (isTooDeep(text)) throw new VmModelError('InvalidJson', 'exceeded max depth');
  try {
    return LONG_NUMBER.test(text) ? parseWithSource(text, keepDigits) : (JSON.parse(text) as unknown);
  } catch (caught) {
    const reason = goSyntaxError(text) ?? (caught instanceof Error ? caught.message : String(caught));
    throw new VmModelError('InvalidJson', reason, { cause: caught });
  }
}

function keepDigits(_key: string, value: unknown, context: { readonly source?: string }): unknown {
  if (typeof value !== 'number' || Number.isSafeInteger(value)) return value;
  const source = context.source ?? '';
  return INTEGER.test(source) ? BigInt(source) : value;
}

/**
 * Prints JSON, bigint as a plain integer.
 *
 * @param indent blanks per level, for people; compact without.
 * @throws {VmModelError} `InvalidJson` for a value that JSON cannot hold (a cycle).
 */
export function renderJson(value: unknown, indent?: number): string {
  try {
    return JSON.stringify(value, hasBigint(value) ? bigintAsNumber : undefined, indent);
  } catch (caught) {
    const reason = caught instanceof Error ? caught.message : String(caught);
    throw new VmModelError('InvalidJson', reason, { cause: caught });
  }
}

function bigintAsNumber(_key: string, value: unknown): unknown {
  return typeof value === 'bigint' ? jsonWithRaw.rawJSON(String(value)) : value;
}

function hasBigint(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return typeof value === 'bigint';
  return Object.values(value).some(hasBigint);
}

const HTML_SENSITIVE = /[<>&\u2028\u2029]/g;
const HTML_ESCAPES: Readonly<Record<string, string>> = {
  '<': '\\u003c',
  '>': '\\u003e',
  '&': '\\u0026',
  '\u2028': '\\u2028',
  '\u2029': '\\u2029',
};

/** A JSON string as Go's encoding/json prints it: HTML-sensitive characters escaped, bad surrogates as U+FFFD. */
export function renderGoString(value: string): string {
  return escapeHtml(JSON.stringify(value.toWellFormed()));
}

/** Turns JSON text into the form in which Go's encoding/json prints it; `<`, `>` and `&` occur in strings only. */
export function escapeHtml(json: string): string {
  return json.replace(HTML_SENSITIVE, (char) => HTML_ESCAPES[char] ?? char);
}
