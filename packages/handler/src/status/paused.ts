import type { Condition, Domain, Vmi } from '../model.ts';
import { findCondition, makeCondition, withoutCondition } from './conditions.ts';

const MESSAGES: Readonly<Record<string, { readonly reason: string; readonly message: string }>> = {
  Migration: { reason: 'PausedByMigrationMonitor', message: 'VMI was paused by the migration monitor' },
  User: { reason: 'PausedByUser', message: 'VMI was paused by user' },
  IOError: { reason: 'PausedIOError', message: 'VMI was paused, low-level IO error detected' },
};

function isPausedByMonitor(vmi: Vmi, nodeName: string): boolean {
  const state = vmi.status?.migrationState;
  return (
    state?.mode === 'Paused' &&
    state.completed !== true &&
    state.sourceNode === nodeName &&
    Boolean(state.targetNodeAddress)
  );
}

/**
 * Condition `Paused`: added for a reason that people should know, kept while the domain stays paused.
 *
 * @source KubeVirt v1.9.0 pkg/virt-handler/vm.go (updatePausedConditions)
 */
export function pausedConditions(
  vmi: Vmi,
  conditions: readonly Condition[],
  domain: Domain | undefined,
  context: { readonly nodeName: string; readonly now: string },
): readonly Condition[] {
  if (domain?.Status.Status !== 'Paused') return withoutCondition(conditions, 'Paused');
  if (findCondition(conditions, 'Paused') !== undefined) return conditions;
  const text = MESSAGES[domain.Status.Reason ?? ''];
  const isMigration = domain.Status.Reason === 'Migration';
  if (text === undefined || (isMigration && !isPausedByMonitor(vmi, context.nodeName))) return conditions;
  const times = { lastProbeTime: context.now, lastTransitionTime: context.now };
  return [...conditions, makeCondition('Paused', 'True', { ...times, ...text })];
}
