import { LONGEST_DOWNTIME_MS } from './decide-limits.ts';
import type { MigrationMode } from './decide-limits.ts';
import type { MigrationSettings, StallSettings } from './settings.ts';

/** A migration at the end of a pass over the guest's memory. */
export interface IterationRecord {
  readonly elapsedMs: number;
  /** Bytes. */
  readonly remaining: number;
}

/** What the detector wants done. Each may be refused; `SwitchoverDetector.refused` tells it so. */
export type SwitchoverAction =
  | { readonly kind: 'startPostCopy'; readonly reason: string }
  | { readonly kind: 'setMaxDowntime'; readonly downtimeMs: number; readonly reason: string }
  | { readonly kind: 'cancel'; readonly reason: string };

/** What decides beside the course of the migration. */
export interface SwitchoverRules {
  readonly settings: MigrationSettings & { readonly stall: StallSettings };
  readonly hasVfio: boolean;
  /** Seconds; 0: no limit. */
  readonly budgetS: number;
}

/**
 * Finds out when a migration makes no progress any more, and then the moment at which little is left to be sent: the
 * guest is paused or switched to post-copy there. Pure; one object per migration.
 *
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/stall-detector.go
 */
export class SwitchoverDetector {
  readonly #rules: SwitchoverRules;
  readonly #stall: StallSettings;
  /** Records that were new minima within the window, oldest first. */
  #candidates: readonly IterationRecord[] = [];
  #outsideMin: number | undefined;
  #last: IterationRecord | undefined;
  /** Average, in bytes per second. */
  #bandwidth: number | undefined;
  #best: number | undefined;
  #history: readonly number[] = [];
  #patienceMs = 0;
  #relaxAtMs = 0;
  #isSwitched = false;
  #wasSwitched = false;
  #budgetS: number;
  #switchDeadlineS: number;

  constructor(rules: SwitchoverRules) {
    this.#rules = rules;
    this.#stall = rules.settings.stall;
    this.#budgetS = rules.budgetS;
    this.#switchDeadlineS = rules.budgetS;
  }

  /** A sample of the bandwidth, in bytes per second. QEMU says 0 until it has measured one, which is to know none. */
  sample(bytesPerSecond: number): void {
    const { ewmaAlpha } = this.#stall;
    const old = this.#bandwidth;
    const average = old === undefined ? bytesPerSecond : ewmaAlpha * bytesPerSecond + (1 - ewmaAlpha) * old;
    this.#bandwidth = average > 0 ? average : undefined;
  }

  /** What is left to be sent, at a look between the ends of passes. */
  note(record: IterationRecord): void {
    this.#last = record;
  }

  /** The end of a pass: what is due now, if the migration is stalled. */
  endPass(record: IterationRecord, elapsedS: number): SwitchoverAction | undefined {
    this.#last = record;
    if (this.#bandwidth === undefined || this.#isSwitched) return undefined;
    this.#updateCandidates(record);
    if (this.#best !== undefined) this.#relax(record);
    else this.#detect(record);
    return this.#best === undefined ? undefined : this.#decide(record, this.#best, elapsedS);
  }

  /** What is due when the migration has taken too long. */
  checkTimeout(mode: MigrationMode, elapsedS: number): SwitchoverAction | undefined {
    const limitS = mode === 'Paused' ? this.#budgetS : this.#switchDeadlineS;
    if (this.#budgetS === 0 || mode === 'PostCopy' || elapsedS <= limitS) return undefined;
    const forced = this.#forceSwitchover(elapsedS);
    if (forced !== undefined) return forced;
    this.#wasSwitched = this.#isSwitched;
    return {
      kind: 'cancel',
      reason: `not completed after ${String(elapsedS)}s, acceptable are ${String(this.#budgetS)}s`,
    };
  }

  /** libvirt refused the last action, so that it may be tried again. */
  refused(): void {
    this.#isSwitched = this.#wasSwitched;
  }

  #updateCandidates(record: IterationRecord): void {
    const windowMs = this.#stall.progressTimeoutS * 1_000;
    const isOld = ({ elapsedMs }: IterationRecord): boolean => elapsedMs <= record.elapsedMs - windowMs;
    const aged = this.#candidates.filter(isOld).map(({ remaining }) => remaining);
    this.#candidates = this.#candidates.filter((candidate) => !isOld(candidate));
    if (aged.length > 0) this.#outsideMin = Math.min(this.#outsideMin ?? Infinity, ...aged);
    const isAboveOutside = record.remaining > (this.#outsideMin ?? Infinity);
    const isNoMinimum = record.remaining >= (this.#candidates.at(-1)?.remaining ?? Infinity);
    if (!isAboveOutside && !isNoMinimum) this.#candidates = [...this.#candidates, record];
  }

  #detect({ elapsedMs, remaining }: IterationRecord): void {
    const outsideMin = this.#outsideMin;
    // In whole bytes, as KubeVirt counts.
    if (outsideMin === undefined || remaining < Math.trunc(outsideMin * (1 - this.#stall.margin))) return;
    this.#best = Math.min(outsideMin, ...this.#candidates.map((candidate) => candidate.remaining));
    this.#patienceMs = this.#stall.progressTimeoutS * 1_000;
    this.#relaxAtMs = elapsedMs + this.#patienceMs;
  }

  /** The longer the wait for the best moment, the less good it has to be. */
  #relax({ elapsedMs, remaining }: IterationRecord): void {
    this.#history = [...this.#history, remaining].sort((a, b) => a - b);
    if (elapsedMs < this.#relaxAtMs) return;
    const [best, ...rest] = this.#history;
    this.#best = best;
    this.#history = rest;
    this.#patienceMs *= this.#stall.patienceDecay;
    this.#relaxAtMs = elapsedMs + this.#patienceMs;
  }

  #decide({ remaining }: IterationRecord, best: number, elapsedS: number): SwitchoverAction | undefined {
    const { settings, hasVfio } = this.#rules;
    if (this.#stall.searchesLocalMinima && remaining > best * (1 + this.#stall.margin)) return undefined;
    if (!this.#canFinish(elapsedS)) return undefined;
    const estimateMs = this.#estimateMs();
    const minimum = `${String(estimateMs)}ms is a local minima`;
    if (settings.allowsDisruption) {
      return settings.allowsPostCopy && !hasVfio
        ? this.#postCopy(`estimated transfer time ${minimum}`)
        : this.#stop(LONGEST_DOWNTIME_MS, elapsedS, `estimated downtime ${minimum}`);
    }
    const { maxDowntimeMs } = settings;
    const factor = this.#stall.precopyPossibleFactor;
    if (estimateMs <= maxDowntimeMs * factor || estimateMs <= maxDowntimeMs) {
      return this.#stop(maxDowntimeMs, elapsedS, `estimated downtime ${String(estimateMs)}ms is tolerable`);
    }
    const text = `estimated downtime ${String(estimateMs)}ms exceeds max allowed downtime ${String(maxDowntimeMs)}ms`;
    this.#markSwitched();
    return { kind: 'cancel', reason: `${text} by a factor of more than x${factor.toFixed(2)}` };
  }

  #forceSwitchover(elapsedS: number): SwitchoverAction | undefined {
    const { settings, hasVfio } = this.#rules;
    if (this.#bandwidth === undefined || this.#isSwitched || !this.#canFinish(elapsedS)) return undefined;
    if (settings.allowsPostCopy && !hasVfio) return this.#postCopy('completion timeout reached');
    if (!settings.allowsDisruption) return undefined;
    this.#budgetS = Math.trunc(this.#budgetS * this.#stall.completionTimeoutFactor);
    const action = this.#stop(LONGEST_DOWNTIME_MS, elapsedS, 'completion timeout reached');
    // Tried once: if libvirt refuses it time and again, the migration has to end all the same.
    this.#wasSwitched = true;
    return action;
  }

  #markSwitched(): void {
    this.#wasSwitched = this.#isSwitched;
    this.#isSwitched = true;
  }

  #postCopy(reason: string): SwitchoverAction {
    this.#markSwitched();
    return { kind: 'startPostCopy', reason };
  }

  #stop(downtimeMs: number, elapsedS: number, reason: string): SwitchoverAction {
    this.#markSwitched();
    this.#switchDeadlineS = elapsedS + this.#stall.switchoverTimeoutS;
    return { kind: 'setMaxDowntime', downtimeMs, reason };
  }

  #canFinish(elapsedS: number): boolean {
    if (this.#budgetS === 0) return true;
    const deadlineS = Math.trunc(this.#budgetS * this.#stall.completionTimeoutFactor);
    return this.#estimateMs() <= (deadlineS - elapsedS) * 1_000;
  }

  /** How long it would take to send the rest. */
  #estimateMs(): number {
    const remaining = this.#last?.remaining ?? 0;
    return this.#bandwidth === undefined ? 0 : Math.trunc(remaining / (this.#bandwidth / 1_000));
  }
}
