import type { Condition } from '../model.ts';

/** Finds a condition by its type. */
export function findCondition(conditions: readonly Condition[], type: string): Condition | undefined {
  return conditions.find((condition) => condition.type === type);
}

/** The list without a type of condition; the same list when it is not in it. */
export function withoutCondition(conditions: readonly Condition[], type: string): readonly Condition[] {
  return findCondition(conditions, type) === undefined
    ? conditions
    : conditions.filter((condition) => condition.type !== type);
}

/** The list with the condition at its end, instead of an older one of its type. */
export function withConditionLast(conditions: readonly Condition[], condition: Condition): readonly Condition[] {
  return [...withoutCondition(conditions, condition.type), condition];
}

/** A condition with both times there; unset ones are null, as the API writes them. */
export function makeCondition(type: string, status: 'True' | 'False', rest: Partial<Condition> = {}): Condition {
  const { lastProbeTime = null, lastTransitionTime = null, ...text } = rest;
  return { type, status, lastProbeTime, lastTransitionTime, ...text };
}

/** True when two conditions say the same, times included. */
export function isSameCondition(a: Condition, b: Condition): boolean {
  return (
    a.status === b.status &&
    (a.reason ?? '') === (b.reason ?? '') &&
    (a.message ?? '') === (b.message ?? '') &&
    (a.lastProbeTime ?? null) === (b.lastProbeTime ?? null) &&
    (a.lastTransitionTime ?? null) === (b.lastTransitionTime ?? null)
  );
}
