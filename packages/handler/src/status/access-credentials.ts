import type { Condition, Domain } from '../model.ts';
import { findCondition, makeCondition, withConditionLast } from './conditions.ts';
import type { StatusEvent } from './facts.ts';

const TYPE = 'AccessCredentialsSynchronized';

/**
 * Condition `AccessCredentialsSynchronized` and its event, when the launcher reports a change.
 *
 * @source KubeVirt v1.9.0 pkg/virt-handler/vm.go (updateAccessCredentialConditions)
 */
export function accessCredentialConditions(
  conditions: readonly Condition[],
  domain: Domain | undefined,
  now: string,
): { readonly conditions: readonly Condition[]; readonly events: readonly StatusEvent[] } {
  const metadata = domain?.Spec.Metadata.KubeVirt.AccessCredential;
  if (metadata === undefined) return { conditions, events: [] };
  const status = metadata.Succeeded === true ? 'True' : 'False';
  const message = metadata.Message ?? '';
  const old = findCondition(conditions, TYPE);
  if (old?.status === status && (old.message ?? '') === message) return { conditions, events: [] };
  const text = message === '' ? {} : { message };
  const next = withConditionLast(conditions, makeCondition(TYPE, status, { lastTransitionTime: now, ...text }));
  const event: StatusEvent =
    status === 'True'
      ? {
          type: 'Normal',
          reason: 'AccessCredentialsSyncSuccess',
          message:
            message === '' ? 'Access credentials sync successful.' : `Access credentials sync successful: ${message}`,
        }
      : {
          type: 'Warning',
          reason: 'AccessCredentialsSyncFailed',
          message: `Access credentials sync failed: ${message}`,
        };
  return { conditions: next, events: [event] };
}
