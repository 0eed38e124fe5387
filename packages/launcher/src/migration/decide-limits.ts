import type { MigrationSettings } from './settings.ts';

/** QEMU takes no longer pause than this. */
export const LONGEST_DOWNTIME_MS = 2_000_000;

/** How the memory of a migrating guest comes to the target, or why the guest stands still. */
export type MigrationMode = 'PreCopy' | 'PostCopy' | 'Paused';

/** A migration at one look. Times in whole seconds, as KubeVirt counts. */
export interface LimitFacts {
  readonly mode: MigrationMode;
  readonly elapsedS: number;
  /** Since less data remained than before. */
  readonly stuckS: number;
  /** 0: no limit. */
  readonly budgetS: number;
  readonly hasVfio: boolean;
}

/** What is to be done with a migration that takes too long. */
export type LimitAction =
  | { readonly kind: 'none' }
  | { readonly kind: 'startPostCopy' }
  | { readonly kind: 'raiseDowntime'; readonly downtimeMs: number }
  | { readonly kind: 'pause' }
  | { readonly kind: 'cancel'; readonly reason: string };

function force({ hasVfio, budgetS }: LimitFacts, allowsPostCopy: boolean): LimitAction {
  if (hasVfio) return { kind: 'raiseDowntime', downtimeMs: Math.min(2 * budgetS * 1_000, LONGEST_DOWNTIME_MS) };
  return { kind: allowsPostCopy ? 'startPostCopy' : 'pause' };
}

/**
 * The limits without a stall detector; the first that is passed counts.
 *
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/live-migration-source.go processInflightMigration
 */
export function decideLimits(settings: MigrationSettings, facts: LimitFacts): LimitAction {
  const { mode, elapsedS, stuckS, budgetS } = facts;
  if (mode === 'PostCopy') return { kind: 'none' };
  const isLate = budgetS > 0 && elapsedS > budgetS;
  if (settings.allowsDisruption && isLate && mode !== 'Paused') return force(facts, settings.allowsPostCopy);
  if (settings.progressTimeoutS > 0 && stuckS > settings.progressTimeoutS) {
    return { kind: 'cancel', reason: `stuck for ${String(stuckS)} seconds` };
  }
  return isLate ? { kind: 'cancel', reason: `not completed after ${String(budgetS)} seconds` } : { kind: 'none' };
}
