/** What is known of one VM of a directory of manifests. */
export interface KeepFacts {
  /** Hash of the manifest; undefined when no manifest asks for the VM. */
  readonly wantedHash: string | undefined;
  /** The VMI as stored; undefined when there is none. */
  readonly stored: { readonly hash: string; readonly phase: string; readonly isStopping: boolean } | undefined;
  /** Hash of the manifest whose VM was stopped by hand or ended by itself: it is not started again as it is. */
  readonly settledHash: string | undefined;
  /** Some file could not be read: what it asks for is not known. */
  readonly isManifestUnknown: boolean;
  /** Failures in a row, and milliseconds since the last one. */
  readonly failures: number;
  readonly sinceFailureMs: number;
}

/** What is to be done for one VM. */
export type KeepStep =
  | { readonly kind: 'admit' }
  | { readonly kind: 'stop'; readonly why: string }
  | { readonly kind: 'settle' }
  | { readonly kind: 'forget' }
  | { readonly kind: 'wait'; readonly afterMs: number }
  | { readonly kind: 'none' };

const FIRST_DELAY_MS = 5_000;
const MAX_DELAY_MS = 300_000;

/** How long a VM that failed so often in a row is left alone. */
export function restartDelayMs(failures: number): number {
  return failures === 0 ? 0 : Math.min(FIRST_DELAY_MS * 2 ** (failures - 1), MAX_DELAY_MS);
}

/**
 * Keeps a VM as its manifest wants it: started when there is none, stopped when the manifest is gone or another, started
 * again when it failed. A guest that shut itself down stays down until its manifest changes.
 */
export function decideKeep(facts: KeepFacts): KeepStep {
  const { wantedHash, stored, settledHash } = facts;
  if (stored !== undefined) return decideStored(facts, stored);
  if (wantedHash === undefined) {
    return settledHash !== undefined && !facts.isManifestUnknown ? { kind: 'forget' } : { kind: 'none' };
  }
  if (wantedHash === settledHash) return { kind: 'none' };
  const left = restartDelayMs(facts.failures) - facts.sinceFailureMs;
  return left > 0 ? { kind: 'wait', afterMs: left } : { kind: 'admit' };
}

function decideStored(facts: KeepFacts, stored: NonNullable<KeepFacts['stored']>): KeepStep {
  const { wantedHash, settledHash } = facts;
  if (stored.phase === 'Succeeded' && settledHash !== stored.hash) return { kind: 'settle' };
  if (stored.isStopping) return { kind: 'none' };
  if (stored.phase === 'Succeeded' || stored.phase === 'Failed') return { kind: 'stop', why: `it is ${stored.phase}` };
  if (wantedHash === undefined) {
    return facts.isManifestUnknown ? { kind: 'none' } : { kind: 'stop', why: 'its manifest is gone' };
  }
  return wantedHash === stored.hash ? { kind: 'none' } : { kind: 'stop', why: 'its manifest changed' };
}
