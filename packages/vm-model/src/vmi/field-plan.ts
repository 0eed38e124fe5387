import { VMI_TABLE } from '../gen/vmi-table.gen.ts';

/** What a value of a VMI must be: a scalar, a list or map of something, or an object with known fields. */
export type ValuePlan =
  | { readonly kind: ScalarKind }
  | { readonly kind: 'list' | 'map'; readonly of: ValuePlan }
  | { readonly kind: 'struct'; readonly fields: readonly FieldPlan[] };

/** Scalars, and values that are carried as they are: `object` an object, `any` anything. */
export type ScalarKind =
  'string' | 'bool' | 'int' | 'int32' | 'int64' | 'uint' | 'uint32' | 'quantity' | 'object' | 'any';

/** One field of an object. */
export interface FieldPlan {
  readonly key: string;
  readonly value: ValuePlan;
  /** The field is there after reading, with Go's zero value if nothing else. */
  readonly isRequired: boolean;
  /** `null` is a value of its own. */
  readonly isNullable: boolean;
}

const MARKS = /[!?]$/;

/** The plan of a type of the table. Types do not contain themselves, so it is a tree. */
function planOf(type: string): ValuePlan {
  if (type.startsWith('[]')) return { kind: 'list', of: planOf(type.slice(2)) };
  if (type.startsWith('{}')) return { kind: 'map', of: planOf(type.slice(2)) };
  const fields = VMI_TABLE[type];
  if (fields === undefined) return { kind: type as ScalarKind };
  return {
    kind: 'struct',
    fields: Object.entries(fields).map(([key, marked]) => ({
      key,
      value: planOf(marked.replace(MARKS, '')),
      isRequired: marked.endsWith('!'),
      isNullable: marked.endsWith('?'),
    })),
  };
}

/** The plan of a whole VMI. */
export const VMI_PLAN = planOf('Vmi');
