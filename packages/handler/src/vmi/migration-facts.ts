import type { Domain, Vmi } from '../model.ts';
import { isDecentralizedTarget } from './phase.ts';

function hasBegun(times: { StartTimestamp?: unknown; EndTimestamp?: unknown }): boolean {
  return Boolean(times.StartTimestamp) && !times.EndTimestamp;
}

/** True between the start and the end of a migration, by the VMI's own timestamps. */
export function isMigrationRunning(vmi: Vmi, nowMs: number): boolean {
  const state = vmi.status?.migrationState;
  if (!state?.startTimestamp || Date.parse(state.startTimestamp) > nowMs) return false;
  return !state.endTimestamp || Date.parse(state.endTimestamp) > nowMs;
}

/**
 * True while the migration controllers own the VMI, so that the VM controller keeps its hands off.
 *
 * @source KubeVirt v1.9.0 pkg/virt-handler/vm.go:390-430
 */
export function isMigrationInProgress(vmi: Vmi, domain: Domain | undefined): boolean {
  const state = vmi.status?.migrationState;
  if (state?.startTimestamp && !state.endTimestamp) return true;
  if (isDecentralizedTarget(vmi) && state?.completed !== true) return true;
  if (domain === undefined) return false;
  const metadata = domain.Spec.Metadata.KubeVirt.Migration;
  if (metadata !== undefined && hasBegun(metadata)) return true;
  const { Status: status, Reason: reason } = domain.Status;
  return status === 'Paused' && (reason === 'Migration' || reason === 'StartingUp' || reason === 'Postcopy');
}

/** True for the sending VMI of a migration between clusters. */
export function isDecentralizedSource(vmi: Vmi): boolean {
  const target = vmi.status?.migrationState?.targetState;
  return Boolean(target?.syncAddress) && Boolean(target?.nodeAddress);
}
