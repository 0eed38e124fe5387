import { errorText } from '../errors.ts';
import type { Condition } from '../model.ts';
import { findCondition, makeCondition, withConditionLast, withoutCondition } from './conditions.ts';

const TYPE = 'Synchronized';
const REASON = 'Synchronizing with the Domain failed.';

/**
 * Condition `Synchronized`: False while syncs fail, removed when one goes well. The message stays the first one.
 *
 * @source KubeVirt v1.9.0 pkg/virt-handler/vm.go:1167 (handleSyncError)
 */
export function synchronizedConditions(
  conditions: readonly Condition[],
  syncError: unknown,
  now: string,
): readonly Condition[] {
  if (syncError === undefined) return withoutCondition(conditions, TYPE);
  const old = findCondition(conditions, TYPE);
  if (old?.status === 'False' && old.reason === REASON) return conditions;
  const message = errorText(syncError);
  return withConditionLast(
    conditions,
    makeCondition(TYPE, 'False', { lastTransitionTime: now, reason: REASON, message }),
  );
}
