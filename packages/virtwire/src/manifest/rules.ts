import { parseQuantity } from '@virtwire/vm-model';

/** Takes what is wrong with a field. */
export type Report = (field: string, what: string) => void;

/** Checks the value of a field. A field that is not set (`null` in YAML) has no wrong type. */
export type Rule = (report: Report, field: string, value: unknown) => void;

const SHOWN_CHARS = 40;
const MAX_INT32 = 2 ** 31 - 1;
const MAX_UINT32 = 2 ** 32 - 1;

/** A value as a message shows it: short, on one line. */
function renderValue(value: unknown): string {
  if (Array.isArray(value)) return 'a list';
  if (typeof value === 'object') return value === null ? 'nothing' : 'an object';
  const text = typeof value === 'bigint' ? String(value) : JSON.stringify(value);
  return text.length > SHOWN_CHARS ? `${text.slice(0, SHOWN_CHARS)}...` : text;
}

function isFields(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function rule(what: string, isRight: (value: unknown) => boolean): Rule {
  return (report, field, value) => {
    if (value === undefined || value === null || isRight(value)) return;
    report(field, `must be ${what}, not ${renderValue(value)}`);
  };
}

/** A whole number within bounds. */
export function integer(min: number, max: number, what = `a whole number from ${min} to ${max}`): Rule {
  return rule(what, (value) => {
    if (typeof value === 'bigint') return value >= min && value <= max;
    return Number.isInteger(value) && Number(value) >= min && Number(value) <= max;
  });
}

/** Text. */
export const text = rule('text', (value) => typeof value === 'string');

/** true or false. */
export const flag = rule('true or false', (value) => typeof value === 'boolean');

const HINT = 'write for example 512Mi, 2Gi or 500m';
const anyAmount = rule('an amount such as 512Mi', (value) => typeof value === 'string' || typeof value === 'number');

/** An amount such as `512Mi` or `2`, not less than nothing. */
export const amount: Rule = (report, field, value) => {
  if (typeof value !== 'string' && typeof value !== 'number') return anyAmount(report, field, value);
  const parsed = parseQuantity(value);
  if (parsed === undefined) report(field, `"${value}" is no quantity: ${HINT}`);
  else if (parsed.nano < 0n) report(field, `${value} is less than nothing: ${HINT}`);
};

/** How many of something: Go's uint32. */
export const count = integer(0, MAX_UINT32, 'a whole number, 0 or more');

/** A whole number of either sign: Go's int32. */
export const int32 = integer(-MAX_INT32 - 1, MAX_INT32);

/** A number of a port. */
export const port = integer(1, 65_535);

/** Rules for some fields of a type, so that a table names no field that there is not. */
export type RulesOf<T> = { readonly [K in keyof T]?: Rule };

/** An object; only the fields of the table are looked at, others may be there. */
export function object(rules: Readonly<Record<string, Rule>> = {}): Rule {
  return (report, field, value) => {
    if (value === undefined || value === null) return;
    if (!isFields(value)) return report(field, `must be an object, not ${renderValue(value)}`);
    for (const [name, check] of Object.entries(rules)) {
      check(report, field === '' ? name : `${field}.${name}`, value[name]);
    }
  };
}

/** A list whose entries all follow one rule. */
export function list(of: Rule): Rule {
  return (report, field, value) => {
    if (value === undefined || value === null) return;
    if (!Array.isArray(value)) return report(field, `must be a list, not ${renderValue(value)}`);
    for (const [i, entry] of (value as unknown[]).entries()) {
      if (entry === null) report(`${field}[${i}]`, 'is empty');
      else of(report, `${field}[${i}]`, entry);
    }
  };
}

/** An object with any names, whose values all follow one rule. */
export function table(of: Rule): Rule {
  return (report, field, value) => {
    if (value === undefined || value === null) return;
    if (!isFields(value)) return report(field, `must be an object, not ${renderValue(value)}`);
    for (const [name, entry] of Object.entries(value)) of(report, `${field}.${name}`, entry);
  };
}
