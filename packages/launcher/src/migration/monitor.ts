import type { Vmi } from '@virtwire/vm-model';
import type { Logger } from '@virtwire/telemetry';
import type { Clock } from '../config/clock.ts';
import type { DomainRef, LibvirtPort } from '../domain/libvirt-port.ts';
import type { PausedSet } from '../domain/paused-set.ts';
import { DOMAIN_STATE, PAUSED_REASON } from '../domain/state.ts';
import type { MigrationNumbers } from '../domain/stats-json.ts';
import { abortMigration } from './abort.ts';
import type { LimitAction } from './decide-limits.ts';
import { decideLimits } from './decide-limits.ts';
import type { JobProgress } from './job.ts';
import { progressOf } from './job.ts';
import type { MigrationCalls, Unregister } from './libvirt-port.ts';
import type { MigrationRecord } from './record.ts';
import type { MigrationSettings } from './settings.ts';
import type { SwitchoverAction } from './stall-detector.ts';
import { SwitchoverDetector } from './stall-detector.ts';
import { hasVfio } from './volumes.ts';
import { TOO_LATE, within } from '../config/within.ts';

const LOOK_EVERY_MS = 400;
/** A question about the job that is not answered by then is asked again. */
const ASK_LIMIT_MS = 30_000;
/** Looks between two lines of the log. */
const LOG_EVERY = 10;
/** Ends of passes that may wait to be looked at. */
const ITERATION_LIMIT = 16;
/** QEMU's own choice, which the detector starts from. */
const DEFAULT_DOWNTIME_MS = 300;

/** What watching a migration needs. */
export interface MonitorDeps {
  readonly libvirt: Pick<LibvirtPort, 'getState' | 'getJobInfo' | 'getJobStats' | 'abortJob' | 'suspend'>;
  readonly calls: Pick<MigrationCalls, 'startPostCopy' | 'setMaxDowntime' | 'onMigrationIteration'>;
  readonly record: MigrationRecord;
  readonly paused: PausedSet;
  readonly clock: Clock;
}

/** The migration that is watched. */
export interface WatchedMigration {
  readonly vmi: Vmi;
  readonly domain: DomainRef;
  readonly settings: MigrationSettings;
  /** Seconds; 0: no limit. */
  readonly budgetS: number;
  readonly log: Logger;
}

/** Watches one migration from the source. */
export interface MigrationMonitor {
  /** Watches until the signal aborts. */
  watch(signal: AbortSignal): Promise<void>;
  /** Numbers of the last look; undefined before the first and after the end. */
  numbers(): MigrationNumbers | undefined;
  /** The guest stands still on the monitor's account. */
  hasPaused(): boolean;
}

/** Creates the monitor, at rest. `@source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/live-migration-source.go startMonitor` */
export function createMigrationMonitor(deps: MonitorDeps, watched: WatchedMigration): MigrationMonitor {
  return new SourceMonitor(deps, watched);
}

class SourceMonitor implements MigrationMonitor {
  readonly #deps: MonitorDeps;
  readonly #watched: WatchedMigration;
  readonly #startedAtMs: number;
  #detector: SwitchoverDetector | undefined;
  #budgetS: number;
  #hasDowntime = false;
  #hasPaused = false;
  #progressAtMs: number;
  #watermark = 0;
  #looks = 0;
  #numbers: MigrationNumbers | undefined;
  /** A question that libvirt has not answered yet. */
  #asking: Promise<unknown> | undefined;
  #iterations = 0;
  #wake: () => void = () => undefined;

  constructor(deps: MonitorDeps, watched: WatchedMigration) {
    this.#deps = deps;
    this.#watched = watched;
    this.#startedAtMs = deps.clock.now();
    this.#progressAtMs = this.#startedAtMs;
    this.#budgetS = watched.budgetS;
  }

  numbers(): MigrationNumbers | undefined {
    return this.#numbers;
  }

  hasPaused(): boolean {
    return this.#hasPaused;
  }

  async watch(signal: AbortSignal): Promise<void> {
    const unregister = await this.#register();
    try {
      for (;;) {
        const isBoundary = await this.#nextLook(signal);
        if (signal.aborted) return;
        await this.#look(isBoundary);
      }
    } finally {
      this.#numbers = undefined;
      await unregister?.().catch((caught: unknown) => {
        this.#watched.log.warn({ reason: caught }, 'failed to deregister the migration iteration callback');
      });
    }
  }

  /** The detector works with the ends of passes only; without them the plain limits count. */
  async #register(): Promise<Unregister | undefined> {
    const { settings, vmi, domain, budgetS, log } = this.#watched;
    const { stall } = settings;
    if (stall === undefined) return undefined;
    const isVfio = hasVfio(vmi);
    if (isVfio) log.warn('VFIO VM detected: QEMU may under-report what remains to be sent for VFIO devices.');
    try {
      const unregister = await this.#deps.calls.onMigrationIteration(domain.name, () => this.#onIteration());
      this.#detector = new SwitchoverDetector({ settings: { ...settings, stall }, hasVfio: isVfio, budgetS });
      return unregister;
    } catch (caught) {
      const text = 'failed to register migration iteration callback, falling back to legacy stall handling';
      log.error({ reason: caught }, text);
      return undefined;
    }
  }

  #onIteration(): void {
    if (this.#iterations >= ITERATION_LIMIT) return;
    this.#iterations++;
    this.#wake();
  }

  /** Waits for the end of a pass or for the next look; true for the former. */
  async #nextLook(signal: AbortSignal): Promise<boolean> {
    if (this.#iterations === 0) {
      const woken = new AbortController();
      this.#wake = () => woken.abort();
      await this.#deps.clock.sleep(LOOK_EVERY_MS, AbortSignal.any([signal, woken.signal]));
    }
    if (this.#iterations === 0) return false;
    this.#iterations--;
    return true;
  }

  async #look(isBoundary: boolean): Promise<void> {
    const progress = await this.#readProgress();
    if (progress !== undefined) this.#noteProgress(progress);
    if (this.#looks++ % LOG_EVERY === 0 || isBoundary) this.#logProgress(progress);
    if (this.#detector === undefined) await this.#checkLimits();
    else await this.#detect(this.#detector, progress, isBoundary);
  }

  /** libvirt may be long in answering; the limits are looked at all the same. */
  async #readProgress(): Promise<JobProgress | undefined> {
    const { libvirt, clock } = this.#deps;
    if (this.#asking !== undefined) return undefined;
    const asking = libvirt.getJobStats(this.#watched.domain, 0);
    this.#asking = asking;
    const forget = (): void => {
      this.#asking = undefined;
    };
    within(clock, ASK_LIMIT_MS, asking).then(forget, forget);
    try {
      const job = await within(clock, LOOK_EVERY_MS, asking);
      return job === TOO_LATE ? undefined : progressOf(job);
    } catch (caught) {
      this.#watched.log.info({ reason: caught }, 'failed to get domain job info');
      return undefined;
    }
  }

  #noteProgress({ remaining = this.#watermark, numbers }: JobProgress): void {
    this.#numbers = numbers;
    if (this.#watermark === 0 || remaining < this.#watermark) this.#progressAtMs = this.#deps.clock.now();
    this.#watermark = remaining;
  }

  #logProgress(progress: JobProgress | undefined): void {
    if (progress === undefined) return;
    const { elapsedMs = 0, remaining = 0, memoryBps = 0, iteration = 0 } = progress;
    const uid = this.#watched.vmi.metadata.uid;
    const text = `TimeElapsed:${String(elapsedMs)}ms DataRemaining:${String(remaining)} MemoryBps:${String(memoryBps)}`;
    this.#watched.log.info(`Migration info for ${uid}: ${text} Iteration:${String(iteration)}`);
  }

  #secondsSince(epochMs: number): number {
    return Math.floor((this.#deps.clock.now() - epochMs) / 1_000);
  }

  async #checkLimits(): Promise<void> {
    const { settings, vmi } = this.#watched;
    const action = decideLimits(settings, {
      mode: this.#deps.record.mode(),
      elapsedS: this.#secondsSince(this.#startedAtMs),
      stuckS: this.#secondsSince(this.#progressAtMs),
      budgetS: this.#budgetS,
      hasVfio: hasVfio(vmi),
    });
    try {
      await this.#limit(action);
    } catch (caught) {
      this.#watched.log.error({ reason: caught }, `failed to ${action.kind} the migration, trying again`);
    }
  }

  async #limit(action: LimitAction): Promise<void> {
    const { libvirt, calls } = this.#deps;
    const { domain, log } = this.#watched;
    switch (action.kind) {
      case 'none':
        return;
      case 'startPostCopy':
        return this.#startPostCopy('the time is over');
      case 'raiseDowntime':
        log.info(`Raising the longest pause to ${String(action.downtimeMs)} ms to allow migration to complete`);
        await calls.setMaxDowntime(domain, action.downtimeMs);
        return this.#notePause();
      case 'pause':
        log.info('Pausing the guest to allow migration to complete');
        await libvirt.suspend(domain);
        return this.#notePause();
      case 'cancel':
        return this.#cancel(action.reason);
    }
  }

  /** A guest that stands still for its migration gets as much time again, and no sync sets it going. */
  #notePause(): void {
    this.#budgetS *= 2;
    this.#rememberPause();
  }

  #rememberPause(): void {
    const { paused, record } = this.#deps;
    const { uid } = this.#watched.vmi.metadata;
    this.#hasPaused ||= !paused.has(uid);
    paused.add(uid);
    record.setMode('Paused');
  }

  async #startPostCopy(reason: string): Promise<void> {
    this.#watched.log.info(`Starting post copy mode for migration: ${reason}`);
    await this.#deps.calls.startPostCopy(this.#watched.domain);
    this.#deps.record.setMode('PostCopy');
  }

  async #cancel(reason: string): Promise<void> {
    if (this.#deps.record.hasAbort()) return;
    this.#watched.log.warn(`Aborting migration: ${reason}`);
    const status = await abortMigration(this.#deps, this.#watched.domain, this.#watched.log);
    if (status === 'Failed') this.#detector?.refused();
  }

  async #detect(detector: SwitchoverDetector, progress: JobProgress | undefined, isBoundary: boolean): Promise<void> {
    const { record } = this.#deps;
    await this.#setFirstDowntime();
    await this.#noticePause();
    if (record.hasAbort()) return;
    const elapsedS = this.#secondsSince(this.#startedAtMs);
    const due = progress === undefined ? undefined : this.#feed(detector, progress, isBoundary, elapsedS);
    if (due !== undefined) await this.#switch(detector, due);
    const late = record.hasAbort() ? undefined : detector.checkTimeout(record.mode(), elapsedS);
    if (late !== undefined) await this.#switch(detector, late);
  }

  #feed(
    detector: SwitchoverDetector,
    { remaining, elapsedMs, iteration, memoryBps }: JobProgress,
    isBoundary: boolean,
    elapsedS: number,
  ): SwitchoverAction | undefined {
    if (remaining === undefined || elapsedMs === undefined || iteration === undefined) return undefined;
    if (isBoundary) return detector.endPass({ remaining, elapsedMs }, elapsedS);
    if (this.#deps.record.mode() !== 'PreCopy') detector.note({ remaining, elapsedMs });
    else if (memoryBps !== undefined) detector.sample(memoryBps);
    return undefined;
  }

  async #switch(detector: SwitchoverDetector, action: SwitchoverAction): Promise<void> {
    const { log, domain } = this.#watched;
    try {
      if (action.kind === 'cancel') return await this.#cancel(action.reason);
      if (action.kind === 'startPostCopy') return await this.#startPostCopy(action.reason);
      log.info(`max downtime set to ${String(action.downtimeMs)}ms: ${action.reason}`);
      await this.#deps.calls.setMaxDowntime(domain, action.downtimeMs);
    } catch (caught) {
      detector.refused();
      log.error({ reason: caught }, `failed to ${action.kind}: ${action.reason}`);
    }
  }

  async #setFirstDowntime(): Promise<void> {
    if (this.#hasDowntime) return;
    const { domain, settings, log } = this.#watched;
    try {
      await this.#deps.calls.setMaxDowntime(domain, Math.min(settings.maxDowntimeMs, DEFAULT_DOWNTIME_MS));
      this.#hasDowntime = true;
    } catch (caught) {
      log.warn({ reason: caught }, 'failed to set initial max downtime');
    }
  }

  /** QEMU pauses the guest for a switchover by itself; a sync must not set it going. */
  async #noticePause(): Promise<void> {
    const { libvirt, record } = this.#deps;
    const mode = record.mode();
    if (mode === 'Paused' || mode === 'PostCopy') return;
    try {
      const { state, reason } = await libvirt.getState(this.#watched.domain);
      if (state !== DOMAIN_STATE.paused || reason !== PAUSED_REASON.migration) return;
    } catch (caught) {
      this.#watched.log.warn({ reason: caught }, 'failed to get the domain state');
      return;
    }
    this.#watched.log.info('reconciling VM pause state');
    this.#rememberPause();
  }
}
