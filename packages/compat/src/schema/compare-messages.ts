import { type Schema, SCALARS, type SchemaField, type SchemaMessage } from './model.ts';
import { JSON_CARRIED_ROOT, NEEDED_FIELDS, type SchemaRule } from './semantics.ts';

/** What is wrong with a message that stands in the place of another one. */
export interface MessageNote {
  readonly rule: SchemaRule;
  readonly where: string;
  readonly text: string;
}

/** Both schemas, to look messages up. */
interface Schemas {
  readonly next: Schema;
  readonly release: Schema;
}

/** Types that read each other's bytes. @source buf FIELD_WIRE_COMPATIBLE_TYPE */
const TYPE_GROUPS: readonly (readonly string[])[] = [
  ['int32', 'uint32', 'int64', 'uint64', 'bool', 'enum'],
  ['sint32', 'sint64'],
  ['fixed32', 'sfixed32'],
  ['fixed64', 'sfixed64'],
  ['bytes', 'string'],
];

/** Compares a message of a release with the one that is in its place now, and the messages in it. */
export function compareMessages(schemas: Schemas, from: string, to: string): readonly MessageNote[] {
  const notes: MessageNote[] = [];
  const todo: (readonly [string, string, boolean])[] = [[from, to, false]];
  const done = new Set<string>();
  for (let pair = todo.pop(); pair !== undefined; pair = todo.pop()) {
    const [oldName, newName, isInJson] = pair;
    if (done.has(`${oldName} ${newName}`)) continue;
    done.add(`${oldName} ${newName}`);
    const old = schemas.release.messages.get(oldName);
    const message = schemas.next.messages.get(newName);
    if (old === undefined || message === undefined) continue;
    const isJson = isInJson || oldName === JSON_CARRIED_ROOT;
    for (const field of old.fields) {
      const { notes: found, nested } = compareField(old, field, message, isJson);
      notes.push(...found);
      if (nested !== undefined) todo.push([field.type, nested, isJson]);
    }
  }
  return notes;
}

interface FieldResult {
  readonly notes: readonly MessageNote[];
  /** The message to compare the field's own one with. */
  readonly nested?: string;
}

function compareField(old: SchemaMessage, field: SchemaField, message: SchemaMessage, isJson: boolean): FieldResult {
  const where = `${old.fullName.slice(old.fullName.lastIndexOf('.') + 1)}.${field.name}`;
  const now = message.fields.find(({ number }) => number === field.number);
  const note = (rule: SchemaRule, text: string): FieldResult => ({ notes: [{ rule, where, text }] });
  if (now === undefined) return { notes: missing(where, field, message) };
  if (now.name !== field.name) {
    if (isJson) {
      const text = `the key ${field.name} is ${now.name} now: this message travels as JSON in the VMI as well`;
      return note('JSON_KEY_RENAMED', text);
    }
    return note('FIELD_REUSED', reusedText(field, now, old !== message && old.fullName !== message.fullName));
  }
  if (!isSameCardinality(field, now)) {
    return note('FIELD_WIRE_COMPATIBLE_CARDINALITY', `was ${render(field)} and is ${render(now)} now`);
  }
  if (!isSameType(field, now)) {
    return note('FIELD_WIRE_COMPATIBLE_TYPE', `was ${render(field)} and is ${render(now)} now: it cannot be read`);
  }
  if (field.oneof !== now.oneof) {
    return note('FIELD_SAME_ONEOF', 'setting it clears other fields for one side only');
  }
  return isMessage(now.type) ? { notes: [], nested: now.type } : { notes: [] };
}

function missing(where: string, field: SchemaField, message: SchemaMessage): readonly MessageNote[] {
  const need = NEEDED_FIELDS[where];
  const isReserved = message.reserved.some(([first, last]) => first <= field.number && field.number <= last);
  const moved = message.fields.find(({ name }) => name === field.name);
  const place = moved === undefined ? 'is gone' : `has number ${moved.number} instead of ${field.number}`;
  if (need !== undefined) return [{ rule: 'FIELD_NEEDED', where, text: `${place}: ${need}` }];
  if (isReserved && moved === undefined) return [];
  const text = `${place}, and number ${field.number} is not reserved: a later field may be read as this one`;
  return [{ rule: 'FIELD_NO_DELETE', where, text }];
}

function reusedText(field: SchemaField, now: SchemaField, isOtherMessage: boolean): string {
  const was = `number ${field.number} was ${field.name} (${render(field)})`;
  const is = `is ${now.name} (${render(now)})`;
  const readable = isSameCardinality(field, now) && isSameType(field, now);
  const effect = readable
    ? 'one side reads the other field as its own'
    : 'one side skips what the other one sends, and reads its own field as empty';
  return `${was} and ${is} ${isOtherMessage ? 'in its place' : 'now'}: ${effect}`;
}

function isSameCardinality(a: SchemaField, b: SchemaField): boolean {
  return a.kind === b.kind;
}

function isSameType(a: SchemaField, b: SchemaField): boolean {
  if (a.kind === 'map' && !isCompatible(a.key ?? '', b.key ?? '')) return false;
  return isCompatible(a.type, b.type) || (isMessage(a.type) && isMessage(b.type));
}

function isCompatible(a: string, b: string): boolean {
  return a === b || TYPE_GROUPS.some((group) => group.includes(a) && group.includes(b));
}

function isMessage(type: string): boolean {
  return type !== 'enum' && !SCALARS.has(type);
}

function render({ kind, key, type }: SchemaField): string {
  const short = type.slice(type.lastIndexOf('.') + 1);
  if (kind === 'map') return `map<${key ?? ''}, ${short}>`;
  return kind === 'repeated' ? `repeated ${short}` : short;
}
