import { fitsInteger } from '../domain/integers.ts';
import { VmModelError } from '../errors.ts';
import { parseQuantity } from '../quantity/quantity.ts';
import { type FieldPlan, type ScalarKind, type ValuePlan, VMI_PLAN } from './field-plan.ts';
import type { Quantity } from './metadata.ts';
import type { Vmi } from './vmi.ts';

type Path = (string | number)[];
type Fields = Record<string, unknown>;

const ROOT_NAME = 'VirtualMachineInstance';
const WORDS: Readonly<Record<ScalarKind, string>> = {
  string: 'text',
  bool: 'true or false',
  int: 'a whole number',
  int32: 'a whole number from -2147483648 to 2147483647',
  int64: 'a whole number of 64 bits',
  uint: 'a whole number, 0 or more',
  uint32: 'a whole number from 0 to 4294967295',
  quantity: 'an amount such as 512Mi',
  object: 'an object',
  any: 'anything',
};

/**
 * Makes parsed JSON the VMI that Go would decode from it, in place: `null` means not set, or the zero value where a list
 * or map holds it; fields that every object of their kind has are there; a value of another type than KubeVirt v1.9 has
 * for the field is refused. Fields that are not known stay as they are.
 *
 * @throws {VmModelError} `InvalidJson` with the field: `spec.domain.cpu.cores: must be a whole number from 0 to ...`.
 */
export function completeVmi(value: unknown): Vmi {
  return complete(VMI_PLAN, value, []) as Vmi;
}

function complete(plan: ValuePlan, value: unknown, path: Path): unknown {
  switch (plan.kind) {
    case 'struct':
      return completeStruct(plan.fields, asObject(value, path), path);
    case 'list':
      return completeList(plan.of, value, path);
    case 'map':
      return completeMap(plan.of, asObject(value, path), path);
    default:
      if (!isScalar(plan.kind, value)) throw wrong(path, value, WORDS[plan.kind]);
      return value;
  }
}

function completeStruct(fields: readonly FieldPlan[], object: Fields, path: Path): Fields {
  for (const { key, value, isRequired, isNullable } of fields) {
    const given = object[key];
    if (given === null && isNullable) continue;
    if (given === undefined || given === null) {
      if (isRequired) object[key] = zeroOf(value);
      else if (given === null) Reflect.deleteProperty(object, key);
      continue;
    }
    path.push(key);
    complete(value, given, path);
    path.pop();
  }
  return object;
}

function completeList(plan: ValuePlan, value: unknown, path: Path): readonly unknown[] {
  if (!Array.isArray(value)) throw wrong(path, value, 'a list');
  const list = value as unknown[];
  for (const [index, item] of list.entries()) {
    if (plan.kind === 'any') continue;
    path.push(index);
    if (item === null) list[index] = zeroOf(plan);
    else complete(plan, item, path);
    path.pop();
  }
  return list;
}

function completeMap(plan: ValuePlan, object: Fields, path: Path): Fields {
  for (const [key, item] of Object.entries(object)) {
    if (plan.kind === 'any') continue;
    path.push(key);
    if (item === null) object[key] = zeroOf(plan);
    else complete(plan, item, path);
    path.pop();
  }
  return object;
}

/** What Go has before anything is set. */
function zeroOf(plan: ValuePlan): unknown {
  switch (plan.kind) {
    case 'struct':
      return completeStruct(plan.fields, {}, []);
    case 'list':
      return [];
    case 'string':
      return '';
    case 'bool':
      return false;
    case 'quantity':
      return '0';
    case 'map':
    case 'object':
      return {};
    default:
      return 0;
  }
}

function asObject(value: unknown, path: Path): Fields {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw wrong(path, value, 'an object');
  return value as Fields;
}

function isScalar(kind: ScalarKind, value: unknown): boolean {
  switch (kind) {
    case 'string':
      return typeof value === 'string';
    case 'bool':
      return typeof value === 'boolean';
    case 'quantity':
      return ['string', 'number', 'bigint'].includes(typeof value) && parseQuantity(value as Quantity) !== undefined;
    case 'object':
      return typeof value === 'object' && !Array.isArray(value);
    case 'any':
      return true;
    default:
      return fitsInteger(kind, value);
  }
}

/** The value is named by its kind only: it may be a secret in the wrong place. */
function wrong(path: Path, value: unknown, expected: string): VmModelError {
  const found = typeof value === 'number' || typeof value === 'bigint' ? String(value) : kindName(value, expected);
  return new VmModelError('InvalidJson', `${renderPath(path)}: must be ${expected}, not ${found}`);
}

function kindName(value: unknown, expected: string): string {
  if (Array.isArray(value)) return 'a list';
  switch (typeof value) {
    case 'string':
      if (value === '') return 'empty text';
      return expected === WORDS.quantity ? 'other text' : 'text';
    case 'boolean':
      return String(value);
    default:
      return value === null ? 'nothing' : 'an object';
  }
}

function renderPath(path: Path): string {
  const text = path.map((part) => (typeof part === 'number' ? `[${String(part)}]` : `.${part}`)).join('');
  return text === '' ? ROOT_NAME : text.slice(1);
}
