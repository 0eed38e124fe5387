import { domainName } from '@virtwire/vm-model';
import type { DomainSpec, Vmi } from '@virtwire/vm-model';
import type { Logger } from '@virtwire/telemetry';
import type { Clock } from '../config/clock.ts';
import type { DomainPaths } from '../converter/circumstances.ts';
import { annotationOf, isNonRoot } from '../converter/vmi-traits.ts';
import type { ImagePort } from '../disks/ports.ts';
import type { DomainRef, LibvirtPort } from '../domain/libvirt-port.ts';
import { isUnanswered } from '../domain/libvirt-port.ts';
import type { Mutex } from '../domain/mutex.ts';
import type { PausedSet } from '../domain/paused-set.ts';
import { DOMAIN_STATE, PAUSED_REASON } from '../domain/state.ts';
import type { MigrationNumbers } from '../domain/stats-json.ts';
import { LauncherError, textOf } from '../errors.ts';
import { abortMigration } from './abort.ts';
import { decideFailureReason } from './failure-reason.ts';
import { migrationFlags } from './flags.ts';
import { detachVirtualFunctions } from './host-devices.ts';
import type { MigrateParams, MigrationCalls } from './libvirt-port.ts';
import { hasLeft } from './lost-result.ts';
import type { MigrationMonitor } from './monitor.ts';
import { createMigrationMonitor } from './monitor.ts';
import { migrationParams } from './params.ts';
import type { MigrationRecord } from './record.ts';
import type { MigrationSettings } from './settings.ts';
import { controlSocket } from './sockets.ts';
import { renderTargetXml } from './target-xml.ts';
import { completionBudget, disksToCopy, isBlockMigration } from './volumes.ts';

const FORCED_FAILURE_ANNOTATION = 'kubevirt.io/func-test-force-launcher-migration-failure';
const CANCELLED_EARLY = 'the migration was canceled by client before it began';
const FORCED_FAILURE = 'Failed migration to satisfy functional test condition';
/** libvirt's flag for a description that another daemon takes. */
const MIGRATABLE = 8;

/** A VM, its domain, and what that is like now. */
interface LiveVmi {
  readonly vmi: Vmi;
  readonly domain: DomainRef;
  readonly live: DomainSpec;
}

/** What the source of a migration needs. */
export interface MigrationSourceDeps {
  readonly libvirt: Pick<
    LibvirtPort,
    | 'lookupDomainByName'
    | 'getState'
    | 'getXml'
    | 'getJobInfo'
    | 'getJobStats'
    | 'abortJob'
    | 'suspend'
    | 'detachDevice'
  >;
  readonly calls: MigrationCalls;
  readonly record: MigrationRecord;
  readonly paused: PausedSet;
  readonly mutex: Mutex;
  readonly clock: Clock;
  readonly images: Pick<ImagePort, 'info'>;
  readonly parseSpec: (xml: string) => DomainSpec;
  /** Size in bytes of the files below the ephemeral directory. */
  readonly ephemeralBytes: () => Promise<bigint>;
  /** libvirt's number of the daemon's release; undefined when it is not known, and taken for the newest. */
  readonly libvirtVersion?: (() => Promise<bigint>) | undefined;
}

/** Where things are, and what this release can do. */
export interface MigrationSourceConfig {
  readonly shareDir: string;
  readonly paths: DomainPaths;
  /** Targets edit the domain themselves, by libvirt's hook. */
  readonly targetHasHooks: boolean;
}

/** The source of migrations of this launcher's VM. */
export interface MigrationSource {
  /**
   * Starts a migration in the background; what becomes of it is told by the domain's metadata. The same migration again
   * does nothing while it runs (FM-8.1).
   *
   * @throws {LauncherError} `MigrationFailed` when it cannot be started
   */
  migrate(vmi: Vmi, settings: MigrationSettings, log: Logger): void;
  /**
   * Asks to give up the migration that runs; does nothing when none runs or that was asked before (FM-8.1). One that is
   * still prepared ends before libvirt hears of it.
   */
  cancel(vmi: Vmi, log: Logger): void;
  isActive(): boolean;
  /** Resolves when no migration runs any more and its result is recorded. */
  settled(): Promise<void>;
  /** Numbers of the migration that runs. */
  numbers(): MigrationNumbers | undefined;
}

/** Creates the source, at rest. `@source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/live-migration-source.go` */
export function createMigrationSource(deps: MigrationSourceDeps, config: MigrationSourceConfig): MigrationSource {
  return new LibvirtMigrationSource(deps, config);
}

interface Prepared {
  readonly uri: string;
  readonly params: MigrateParams;
  readonly flags: number;
}

/** A failure with the words of the step that it ends. */
async function step<T>(doing: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (caught) {
    throw LauncherError.from(caught, 'MigrationFailed', doing);
  }
}

function uidOf(vmi: Vmi): string {
  const backup = vmi.status?.changedBlockTracking?.backupStatus;
  if (backup != null && backup.completed !== true) {
    const text = `cannot migrate VMI until backup ${backup.backupName ?? ''} is completed`;
    throw new LauncherError('MigrationFailed', text);
  }
  const state = vmi.status?.migrationState;
  if (state == null) throw new LauncherError('MigrationFailed', 'cannot migrate VMI until migrationState is ready');
  return (state.sourceState == null ? state.migrationUid : state.sourceState.migrationUID) ?? '';
}

class LibvirtMigrationSource implements MigrationSource {
  readonly #deps: MigrationSourceDeps;
  readonly #config: MigrationSourceConfig;
  #running: Promise<void> | undefined;
  #monitor: MigrationMonitor | undefined;
  #aborting: Promise<unknown> | undefined;
  /** libvirt was told to migrate, and has not returned. */
  #isUnderWay = false;

  constructor(deps: MigrationSourceDeps, config: MigrationSourceConfig) {
    this.#deps = deps;
    this.#config = config;
  }

  migrate(vmi: Vmi, settings: MigrationSettings, log: Logger): void {
    const uid = uidOf(vmi);
    if (!this.#deps.record.start(uid)) return;
    const earlier = this.#running ?? Promise.resolve();
    const run = earlier.then(() => this.#run(uid, vmi, settings, log));
    this.#running = run;
    void run.finally(() => {
      if (this.#running === run) this.#running = undefined;
    });
  }

  cancel(vmi: Vmi, log: Logger): void {
    const { record } = this.#deps;
    record.touch();
    if (!record.isRunning()) {
      log.info('cancel migration ignored: vmi is not migrating');
      return;
    }
    if (record.hasAbort()) {
      log.info('cancel migration ignored: an abort is under way');
      return;
    }
    record.setAbort('Aborting');
    if (this.#isUnderWay) this.#aborting = this.#abort(vmi, log);
    else log.info('the migration is cancelled before it begins');
  }

  isActive(): boolean {
    return this.#running !== undefined;
  }

  async settled(): Promise<void> {
    while (this.#running !== undefined) await this.#running;
  }

  numbers(): MigrationNumbers | undefined {
    return this.#monitor?.numbers();
  }

  async #abort(vmi: Vmi, log: Logger): Promise<void> {
    try {
      await abortMigration(this.#deps, await this.#find(vmi), log);
    } catch (caught) {
      log.error({ reason: caught }, 'failed to cancel migration');
      this.#deps.record.setAbort('Failed');
    }
  }

  /** Never rejects: what fails is the migration's result (FM-8.4). */
  async #run(uid: string, vmi: Vmi, settings: MigrationSettings, log: Logger): Promise<void> {
    let failure: string | undefined;
    try {
      await this.#migrate(vmi, settings, log);
      log.info('Live migration succeeded.');
    } catch (caught) {
      log.error({ reason: caught }, 'Live migration failed.');
      failure = textOf(caught);
    }
    await this.#aborting?.catch(() => undefined);
    this.#aborting = undefined;
    // One that was cancelled before it began has nothing else to end it.
    if (failure !== undefined && this.#deps.record.isAborting()) this.#deps.record.setAbort('Succeeded');
    const reason = failure === undefined ? undefined : decideFailureReason(failure, this.#deps.record.hasAbort());
    this.#deps.record.finish(uid, reason, log);
    // A guest that stays on its source goes on, and the next sync may resume it again.
    if (failure !== undefined && this.#monitor?.hasPaused() === true) this.#deps.paused.delete(vmi.metadata.uid);
    this.#monitor = undefined;
  }

  async #migrate(vmi: Vmi, settings: MigrationSettings, log: Logger): Promise<void> {
    if (annotationOf(vmi, FORCED_FAILURE_ANNOTATION) !== undefined) {
      throw new LauncherError('MigrationFailed', FORCED_FAILURE);
    }
    const domain = await step('migration monitor failed to look up domain: ', () => this.#find(vmi));
    const budgetS = completionBudget(vmi, settings.completionTimeoutS, await this.#ephemeralBytes(vmi));
    const monitor = createMigrationMonitor(this.#deps, { vmi, domain, settings, budgetS, log });
    this.#monitor = monitor;
    const ended = new AbortController();
    const watching = monitor.watch(ended.signal);
    try {
      const { uri, params, flags } = await this.#prepare(vmi, domain, settings, log);
      if (this.#deps.record.hasAbort()) throw new LauncherError('MigrationFailed', CANCELLED_EARLY);
      this.#isUnderWay = true;
      await this.#callMigrate(vmi, () => this.#deps.calls.migrateToUri(domain, uri, params, flags));
    } finally {
      this.#isUnderWay = false;
      ended.abort();
      await watching;
    }
  }

  /** An answer that was lost with libvirt is no failure of the migration; what became of it is known when it is back. */
  async #callMigrate(vmi: Vmi, call: () => Promise<void>): Promise<void> {
    try {
      await call();
    } catch (caught) {
      const { namespace, name } = vmi.metadata;
      if (!isUnanswered(caught) || !(await hasLeft(this.#deps, domainName(namespace, name)))) throw caught;
    }
  }

  #find(vmi: Vmi): Promise<DomainRef> {
    return this.#deps.libvirt.lookupDomainByName(domainName(vmi.metadata.namespace, vmi.metadata.name));
  }

  /** Only the budget depends on it; a file that cannot be looked at counts nothing. */
  async #ephemeralBytes(vmi: Vmi): Promise<bigint> {
    return isBlockMigration(vmi) ? this.#deps.ephemeralBytes() : 0n;
  }

  async #prepare(vmi: Vmi, domain: DomainRef, settings: MigrationSettings, log: Logger): Promise<Prepared> {
    if (settings.unknownCompression !== undefined) {
      const method = JSON.stringify(settings.unknownCompression);
      log.warn(`Unsupported migration compression method ${method}, compression will be disabled`);
    }
    if (settings.isUnsafe) log.warn("UNSAFE_MIGRATION flag is set, libvirt's migration checks will be disabled!");
    const { state, reason } = await this.#deps.libvirt.getState(domain).catch((caught: unknown) => {
      log.error({ reason: caught }, 'failed to read the state of the domain');
      throw new LauncherError('MigrationFailed', 'failed to retrive domain state', { cause: caught });
    });
    const isPausedByUser = state === DOMAIN_STATE.paused && reason === PAUSED_REASON.user;
    const flags = migrationFlags(settings, { copiesDisks: isBlockMigration(vmi), isPausedByUser });
    const mode = isNonRoot(vmi) ? 'session' : 'system';
    const uri = `qemu+unix:///${mode}?socket=${controlSocket(this.#config.shareDir, vmi.metadata.uid)}`;
    // Nothing else may change the domain between its description and the call.
    const params = await this.#deps.mutex.run(() => this.#prepareDomain(vmi, domain, settings, log));
    return { uri, params, flags };
  }

  async #prepareDomain(vmi: Vmi, domain: DomainRef, settings: MigrationSettings, log: Logger): Promise<MigrateParams> {
    await step('error encountered during preparing domain for migration: ', async () =>
      detachVirtualFunctions(this.#deps, domain, await this.#liveSpec(domain), log),
    );
    const live = await step('failed to get domain spec: ', () => this.#liveSpec(domain));
    return step('error encountered while generating migration parameters: ', () =>
      this.#params({ vmi, domain, live }, settings, log),
    );
  }

  async #params({ vmi, domain, live }: LiveVmi, settings: MigrationSettings, log: Logger): Promise<MigrateParams> {
    const { libvirt, images, libvirtVersion } = this.#deps;
    const { shareDir, paths, targetHasHooks } = this.#config;
    const xml = await renderTargetXml({
      vmi,
      live,
      migratableXml: await libvirt.getXml(domain, MIGRATABLE),
      targetHasHooks,
      paths,
      virtualSize: async (path) => (await images.info(path)).virtualSize,
    });
    const disks = disksToCopy(vmi, await this.#liveDisks(domain, log));
    return migrationParams({ vmi, xml, disks, settings, shareDir, libvirtVersion: await libvirtVersion?.() });
  }

  async #liveSpec(domain: DomainRef): Promise<DomainSpec> {
    return this.#deps.parseSpec(await this.#deps.libvirt.getXml(domain, 0));
  }

  /** As libvirt has them now; when that cannot be told, none is copied, and libvirt says what that leads to. */
  async #liveDisks(domain: DomainRef, log: Logger): Promise<NonNullable<DomainSpec['Devices']['Disks']>> {
    try {
      return (await this.#liveSpec(domain)).Devices.Disks ?? [];
    } catch (caught) {
      log.error({ reason: caught }, 'failed to parse domain XML to get disks.');
      return [];
    }
  }
}
