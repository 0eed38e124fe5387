import type { Condition } from './metadata.ts';

type Conditions = readonly Condition[] | undefined;

/** The condition of a type, if there is one. */
export function findCondition(conditions: Conditions, type: string): Condition | undefined {
  return conditions?.find((condition) => condition.type === type);
}

/** Whether there is a condition of a type, whatever its status. */
export function hasCondition(conditions: Conditions, type: string): boolean {
  return findCondition(conditions, type) !== undefined;
}

/** Whether the condition of a type says True. */
export function isConditionTrue(conditions: Conditions, type: string): boolean {
  return findCondition(conditions, type)?.status === 'True';
}

/** All conditions but those of a type. */
export function withoutCondition(conditions: Conditions, type: string): Condition[] {
  return (conditions ?? []).filter((condition) => condition.type !== type);
}

/** Puts a condition in place of the one of its type, or at the end. */
export function withCondition(conditions: Conditions, next: Condition): Condition[] {
  if (!hasCondition(conditions, next.type)) return [...(conditions ?? []), next];
  return (conditions ?? []).map((condition) => (condition.type === next.type ? next : condition));
}
