import type { PassFacts } from './decide.ts';
import { gracePeriod } from './grace-period.ts';
import type { Step } from './steps.ts';

/** Steps that end a VM which is off: tell the launcher, then remove everything that was made for it. */
export function decideCleanup({ vmi }: PassFacts): Step[] {
  return [{ kind: 'deleteDomain' }, { kind: 'finalCleanup', uid: vmi.metadata.uid }];
}

function gracefully(facts: PassFacts, domain: NonNullable<PassFacts['domain']>): Step {
  const { vmi, observed } = facts;
  const grace = gracePeriod(vmi, domain, observed.nowMs);
  if (grace.kind === 'none') {
    return {
      kind: 'killDomain',
      because: `Graceful shutdown not set, killing deleted VirtualMachineInstance ${vmi.metadata.name}`,
    };
  }
  if (grace.kind === 'expired') {
    return {
      kind: 'killDomain',
      because: `Grace period expired, killing deleted VirtualMachineInstance ${vmi.metadata.name}`,
    };
  }
  if (domain.Status.Status === 'ShuttingDown') {
    const reason = `${vmi.metadata.name} is already shutting down.`;
    return { kind: 'requeue', afterMs: grace.leftSeconds * 1_000, reason, isSafetyNet: true };
  }
  return { kind: 'signalShutdown', isFirst: grace.kind === 'first', requeueAfterMs: grace.waitSeconds * 1_000 };
}

/**
 * Steps that stop a running domain: by its power button while the grace period lasts, else by force.
 *
 * @source KubeVirt v1.9.0 pkg/virt-handler/vm.go:1642-1795
 */
export function decideShutdown(facts: PassFacts, isGraceful: boolean): Step[] {
  const { vmi, domain } = facts;
  const steps: Step[] = [{ kind: 'runHook', point: 'PreVMStop' }, { kind: 'pingLauncher' }];
  if (isGraceful && domain !== undefined) return [...steps, gracefully(facts, domain)];
  const because = `Graceful shutdown not set, killing deleted VirtualMachineInstance ${vmi.metadata.name}`;
  return [...steps, { kind: 'killDomain', because }];
}
