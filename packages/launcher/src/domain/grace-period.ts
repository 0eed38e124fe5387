import type { Vmi } from '@virtwire/vm-model';

const DEFAULT_GRACE_PERIOD_SECONDS = 30;

/** How long the guest has to power off, in seconds. */
export function gracePeriodOf(vmi: Vmi): number {
  return Number(vmi.spec.terminationGracePeriodSeconds ?? DEFAULT_GRACE_PERIOD_SECONDS);
}
