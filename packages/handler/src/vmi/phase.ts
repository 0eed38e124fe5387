import { isFinal, phaseOf } from '../model.ts';
import type { Domain, Vmi, VmiPhase } from '../model.ts';
import type { LauncherState } from './launcher-state.ts';

/** Facts that decide the phase; `domain` is undefined when it is known to be absent. */
export interface PhaseFacts {
  readonly vmi: Vmi;
  readonly domain: Domain | undefined;
  readonly launcher: LauncherState;
}

/** A phase, and when to look again because something is not there yet. */
export interface PhaseResult {
  readonly phase: VmiPhase;
  readonly requeueAfterMs?: number;
}

/** How long to wait for a launcher that is not there yet before looking again. */
export const NOT_INITIALIZED_RETRY_MS = 1_000;

/** True for the receiving VMI of a migration between clusters. */
export function isDecentralizedTarget(vmi: Vmi): boolean {
  return vmi.metadata.annotations?.['kubevirt.io/create-migration-target'] === 'true';
}

/**
 * True when the guest can react to an ACPI power button, so that a destroyed domain means that it did not.
 *
 * @source KubeVirt v1.9.0 pkg/virt-handler/vm.go:2300 (isACPIEnabled)
 */
function isAcpiUsable(vmi: Vmi, domain: Domain): boolean {
  const hasAcpi = domain.Spec.Features?.ACPI !== undefined;
  return hasAcpi && Number(vmi.spec.terminationGracePeriodSeconds ?? 1) !== 0;
}

function phaseOfStopped(vmi: Vmi, domain: Domain): VmiPhase {
  const migration = vmi.status?.migrationState;
  switch (domain.Status.Reason) {
    case 'Crashed':
    case 'Panicked':
      return 'Failed';
    case 'Destroyed':
      if (isAcpiUsable(vmi, domain)) return 'Failed';
      return migration?.failed === true && migration.mode === 'PostCopy' ? 'Failed' : 'Succeeded';
    case 'Shutdown':
    case 'Saved':
    case 'FromSnapshot':
      return 'Succeeded';
    default:
      return phaseOf(vmi);
  }
}

function phaseWithoutDomain({ vmi, launcher }: PhaseFacts): PhaseResult {
  const phase = phaseOf(vmi);
  const isTarget = isDecentralizedTarget(vmi);
  if (isTarget && vmi.status?.migrationState?.failed === true) return { phase };
  const gone: VmiPhase = isTarget ? 'WaitingForSync' : 'Failed';
  if (phase === 'Scheduled') {
    if (launcher === 'not-initialized') return { phase, requeueAfterMs: NOT_INITIALIZED_RETRY_MS };
    return { phase: launcher === 'unresponsive' ? gone : phase };
  }
  if (phase === 'Running') return { phase: gone };
  return { phase: isFinal(vmi) ? phase : 'Scheduled' };
}

/**
 * The phase that a VMI should have, from the state of its domain and launcher.
 *
 * Only for a domain whose state is known: absence must have been confirmed by its launcher, or by the launcher's end.
 *
 * @source KubeVirt v1.9.0 pkg/virt-handler/vm.go:2319 (calculateVmPhaseForStatusReason)
 */
export function calculatePhase(facts: PhaseFacts): PhaseResult {
  const { vmi, domain } = facts;
  if (domain === undefined) return phaseWithoutDomain(facts);
  switch (domain.Status.Status) {
    case 'Shutoff':
    case 'Crashed':
      return { phase: phaseOfStopped(vmi, domain) };
    case 'Paused':
      return { phase: domain.Status.Reason === 'PostcopyFailed' ? 'Failed' : 'Running' };
    case 'Running':
    case 'Blocked':
    case 'PMSuspended':
      return { phase: 'Running' };
    default:
      return { phase: phaseOf(vmi) };
  }
}
