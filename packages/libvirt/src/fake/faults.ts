import type { ProcedureName, StreamProcedureName } from '../caller.ts';

/** What goes wrong with one call. */
export type FaultAction =
  /** The connection is cut; the call is carried out (`after`) or not (`before`, default). */
  | { readonly kind: 'cut'; readonly when?: 'before' | 'after' }
  /** Half of the reply is sent, then the connection is cut, or stays open and silent. */
  | { readonly kind: 'halfPacket'; readonly then?: 'cut' | 'silence' }
  /** A length word of 2 GiB instead of the reply. */
  | { readonly kind: 'giantLength' }
  /** A reply with a serial that nobody asked with. */
  | { readonly kind: 'wrongSerial' }
  /** The right reply, late. */
  | { readonly kind: 'slow'; readonly delayMs: number }
  /** No reply at all. */
  | { readonly kind: 'silent' }
  /** Bytes of the test's choice instead of the reply. */
  | { readonly kind: 'bytes'; readonly bytes: Uint8Array }
  /** An error as the daemon sends it. */
  | { readonly kind: 'error'; readonly code: number; readonly domain?: number; readonly message: string };

/** Which calls a fault hits. */
export interface FaultTarget {
  /** Default: any call. */
  readonly procedure?: ProcedureName | StreamProcedureName;
  /** Calls to let pass first. Default 0. */
  readonly after?: number;
  /** Calls to hit. Default 1. */
  readonly times?: number;
}

/** The faults that are planned, in the order of their planning. */
export class FaultPlan {
  #rules: { readonly action: FaultAction; readonly procedure: string | undefined; skip: number; left: number }[] = [];

  /** Plans a fault. */
  add(action: FaultAction, target: FaultTarget = {}): void {
    this.#rules.push({ action, procedure: target.procedure, skip: target.after ?? 0, left: target.times ?? 1 });
  }

  /** Forgets all planned faults. */
  clear(): void {
    this.#rules = [];
  }

  /** The fault that hits this call, if any; counts it. */
  take(procedure: string): FaultAction | undefined {
    for (const rule of this.#rules) {
      if (rule.procedure !== undefined && rule.procedure !== procedure) continue;
      if (rule.skip > 0) {
        rule.skip--;
        continue;
      }
      rule.left--;
      if (rule.left <= 0) this.#rules = this.#rules.filter((other) => other !== rule);
      return rule.action;
    }
    return undefined;
  }
}
