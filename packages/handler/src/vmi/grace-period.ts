import type { Domain, Vmi } from '../model.ts';

/** Seconds between two shutdown signals to the same guest. */
const SHUTDOWN_RESEND_SECONDS = 5;

/** Where a graceful shutdown stands. */
export type GracePeriod =
  | { readonly kind: 'none' }
  | { readonly kind: 'first'; readonly waitSeconds: number; readonly leftSeconds: number }
  | { readonly kind: 'repeat'; readonly waitSeconds: number; readonly leftSeconds: number }
  | { readonly kind: 'expired' };

/**
 * Grace period of a VMI that is being stopped: the spec's first, else the one in the domain's metadata.
 *
 * Whole-second arithmetic; the clock starts when the launcher took the first shutdown request. `none` means that no
 * graceful attempt is made at all, because the domain carries no grace period.
 *
 * @source KubeVirt v1.9.0 pkg/virt-handler/vm.go:1642-1795
 */
export function gracePeriod(vmi: Vmi, domain: Domain, nowMs: number): GracePeriod {
  const metadata = domain.Spec.Metadata.KubeVirt.GracePeriod;
  const fromDomain = Number(metadata?.DeletionGracePeriodSeconds ?? 0);
  if (fromDomain === 0) return { kind: 'none' };
  const inSpec = vmi.spec.terminationGracePeriodSeconds;
  const fromSpec = inSpec === undefined ? undefined : Number(inSpec);
  const period = fromSpec ?? fromDomain;
  if (period === 0) return { kind: 'expired' };
  const startedAt = metadata?.DeletionTimestamp;
  if (startedAt === undefined) {
    const waitSeconds = fromSpec === undefined ? SHUTDOWN_RESEND_SECONDS : Math.min(SHUTDOWN_RESEND_SECONDS, fromSpec);
    return { kind: 'first', waitSeconds, leftSeconds: period };
  }
  const elapsed = Math.floor(nowMs / 1000) - Math.floor(Date.parse(startedAt) / 1000);
  if (elapsed >= period) return { kind: 'expired' };
  const leftSeconds = Math.max(1, period - elapsed);
  return { kind: 'repeat', waitSeconds: Math.min(SHUTDOWN_RESEND_SECONDS, leftSeconds), leftSeconds };
}
