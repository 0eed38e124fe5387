import { rm } from 'node:fs/promises';
import { join } from 'node:path/posix';
import { domainName, renderTime } from '@virtwire/vm-model';
import type { BackupMetadata, DomainSpec, Vmi } from '@virtwire/vm-model';
import type { Logger } from '@virtwire/telemetry';
import type { Clock } from '../config/clock.ts';
import { findDomain } from '../domain/find-domain.ts';
import type { Freezer } from '../domain/freeze.ts';
import type { DomainRef, LibvirtPort, Params } from '../domain/libvirt-port.ts';
import { isUnanswered } from '../domain/libvirt-port.ts';
import { isMigrating } from '../domain/migrating.ts';
import { LauncherError, textOf } from '../errors.ts';
import { JOB_OPERATION } from '../events/domain-event.ts';
import type { MetadataCache } from '../metadata/cache.ts';
import { parseBlockNodes, QUERY_BLOCK_NODES } from './block-nodes.ts';
import type { BackupOutcome } from './decide-backup.ts';
import { decideOutcome, decideStart, findObstacle, JOB_TYPE } from './decide-backup.ts';
import { makeDirectories } from './directory.ts';
import { checkpointNameOf, createBackupDocuments } from './documents.ts';
import type { BackupExporter } from './exporter.ts';
import type { BackupExport, BackupIdentity, BackupStart } from './request.ts';

const STATS_RUNNING = 0;
const STATS_COMPLETED = 1;
/** How long QEMU may take to close the images of a backup whose end libvirt has told. */
const RELEASE_LIMIT_MS = 5_000;
const RELEASE_POLL_MS = 50;

/** What backups need. */
export interface BackupManagerDeps {
  readonly libvirt: Pick<
    LibvirtPort,
    'lookupDomainByName' | 'getXml' | 'backupBegin' | 'getJobStats' | 'abortJob' | 'monitorCommand'
  >;
  readonly freezer: Freezer;
  readonly exporter: BackupExporter;
  readonly metadata: Pick<MetadataCache, 'backup' | 'migration'>;
  readonly parseSpec: (xml: string) => DomainSpec;
  readonly clock: Clock;
  readonly log: Logger;
  /** Socket on which QEMU shows a pull backup. */
  readonly nbdSocket: string;
}

/** Backups of the VM's tracked disks; what is known of the last one is metadata. */
export interface BackupManager {
  /** Begins a backup; its end comes as an event. Does nothing when it runs already. */
  start(vmi: Vmi, request: BackupStart, log: Logger): Promise<void>;
  /** Ends the running backup; for a pull backup that is its proper end. */
  abort(vmi: Vmi, request: BackupIdentity, log: Logger): Promise<void>;
  /** Lets a server outside the pod read the running pull backup. */
  export(request: BackupExport, log: Logger): Promise<void>;
  /** Records how libvirt's job ended. @param domain undefined when libvirt does not know it any more. */
  complete(domain: DomainRef | undefined, job: Params): Promise<void>;
  /** The VM has ended, and with it the backup that runs: notes that it did not come to its own end. */
  endWithVm(): void;
  /**
   * Finds out about a backup whose end may have been missed while libvirt could not be reached, and ends one of which
   * nobody was told that it began.
   */
  catchUp(name: string): Promise<void>;
}

/** Creates the manager of one VM. */
export function createBackupManager(deps: BackupManagerDeps): BackupManager {
  return new LibvirtBackupManager(deps);
}

const isBackup = ({ params }: { readonly params: Params }): boolean =>
  Number(params.get('operation') ?? 0) === JOB_OPERATION.backup;

const isOpen = (backup: BackupMetadata | undefined): backup is BackupMetadata =>
  (backup?.Name ?? '') !== '' && backup?.EndTimestamp === undefined;

const THAW_FAILED = 'Failed to unfreeze filesystem after backup completion';

/** @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/storage/backup.go */
class LibvirtBackupManager implements BackupManager {
  readonly #deps: BackupManagerDeps;
  /** While a start is under way, libvirt need not know of the job yet. */
  #isStarting = false;
  /** Where the images of the last backup are. */
  #directory: string | undefined;
  /** libvirt took the request to end the backup. */
  #isAborted = false;
  /** libvirt was lost when it was to begin a backup, and may have begun it. */
  #mayHaveLeftover = false;
  /** Such backups that were ended, and whose end libvirt has still to tell. */
  #leftoverEnds = 0;

  constructor(deps: BackupManagerDeps) {
    this.#deps = deps;
  }

  async start(vmi: Vmi, request: BackupStart, log: Logger): Promise<void> {
    const { metadata } = this.#deps;
    log.info('Backup begin called');
    if (isMigrating(metadata)) {
      throw new LauncherError('BadRequest', 'failed to do backup, VMI is currently during migration');
    }
    if (decideStart(metadata.backup.load(), request) === 'running') {
      log.info('Backup already in progress');
      return;
    }
    const { name: Name, startTime: StartTimestamp, skipQuiesce: SkipQuiesce, mode: Mode } = request;
    metadata.backup.store({ Name, StartTimestamp, SkipQuiesce, Mode });
    this.#isStarting = true;
    this.#isAborted = false;
    try {
      await this.#begin(vmi, request, log);
      log.info('Backup started');
    } catch (caught) {
      log.error({ reason: caught }, 'Backup failed to start');
      // So that it can be tried again.
      metadata.backup.store({});
      throw caught;
    } finally {
      this.#isStarting = false;
    }
  }

  async #begin(vmi: Vmi, request: BackupStart, log: Logger): Promise<void> {
    const { libvirt, parseSpec, nbdSocket } = this.#deps;
    const domain = await libvirt.lookupDomainByName(domainName(vmi.metadata.namespace, vmi.metadata.name));
    await this.#endLeftover(domain);
    const { Devices } = parseSpec(await libvirt.getXml(domain, 0));
    const directory = join(request.targetPath, vmi.metadata.name, checkpointNameOf(request));
    try {
      await makeDirectories(directory);
    } catch (caught) {
      throw LauncherError.from(caught, 'BackupFailed', 'error creating dir for backup: ');
    }
    try {
      const documents = createBackupDocuments({ ...request, directory, nbdSocket }, Devices.Disks ?? []);
      const Volumes = documents.volumes.length === 0 ? 'null' : JSON.stringify(documents.volumes);
      this.#record({ CheckpointName: documents.checkpointName, Volumes });
      const { backupXml, checkpointXml } = documents;
      this.#directory = directory;
      await this.#whileQuiet(vmi, request, log, () => libvirt.backupBegin(domain, backupXml, checkpointXml));
    } catch (caught) {
      this.#mayHaveLeftover ||= isUnanswered(caught);
      log.error({ reason: caught }, 'failed to run backup, cleaning up backup directory');
      await rm(directory, { recursive: true, force: true }).catch((error: unknown) => {
        log.error({ reason: error }, 'failed to clean up backup directory');
      });
      throw caught;
    }
  }

  /** Carries out work while the guest's file systems stand still, or as they are if they cannot be frozen. */
  async #whileQuiet(vmi: Vmi, request: BackupStart, log: Logger, work: () => Promise<void>): Promise<void> {
    const { freezer } = this.#deps;
    if (request.skipQuiesce) {
      this.#record({ QuiesceStatus: 'Skipped' });
      await work();
      return;
    }
    log.info('Freezing VMI to capture backup state');
    try {
      await freezer.freeze(vmi, 0, log);
      this.#record({ QuiesceStatus: 'Succeeded' });
    } catch (caught) {
      log.warn(`Failed freezing guest filesystem: ${textOf(caught)}`);
      this.#record({ QuiesceStatus: 'Failed', BackupMsg: textOf(caught) });
    }
    try {
      await work();
    } finally {
      log.info('Thawing VMI after backup job started');
      await freezer.thaw(vmi, log).catch((caught: unknown) => {
        log.error({ reason: caught }, THAW_FAILED);
        this.#record({ BackupMsg: THAW_FAILED });
      });
    }
  }

  async abort(vmi: Vmi, request: BackupIdentity, log: Logger): Promise<void> {
    const { libvirt, metadata } = this.#deps;
    const obstacle = findObstacle(metadata.backup.load(), request);
    if (obstacle !== undefined) throw new LauncherError('BadRequest', `failed to abort backup: ${obstacle}`);
    const domain = await libvirt.lookupDomainByName(domainName(vmi.metadata.namespace, vmi.metadata.name));
    const { type, params } = await libvirt.getJobStats(domain, STATS_RUNNING);
    const operation = Number(params.get('operation') ?? 0);
    if (operation !== JOB_OPERATION.backup || type !== JOB_TYPE.unbounded) {
      throw new LauncherError('BadRequest', `cannot abort backup, wrong operation or type: ${operation}, ${type}`);
    }
    await libvirt.abortJob(domain);
    this.#isAborted = true;
    log.info('backup job abort initiated successfully');
  }

  async export(request: BackupExport, log: Logger): Promise<void> {
    const { exporter, metadata } = this.#deps;
    const obstacle = findObstacle(metadata.backup.load(), request);
    if (obstacle !== undefined) throw new LauncherError('BadRequest', obstacle);
    await exporter.start(request, log);
  }

  async complete(domain: DomainRef | undefined, job: Params): Promise<void> {
    const { libvirt, metadata, log } = this.#deps;
    if (this.#leftoverEnds > 0) {
      this.#leftoverEnds--;
      return;
    }
    const ending = metadata.backup.load();
    if (ending === undefined) {
      log.warn('Received backup job completed event, but no active backup metadata found in cache. Ignoring event.');
      return;
    }
    if (ending.EndTimestamp !== undefined) return;
    let type = Number(job.get('type') ?? 0);
    try {
      if (domain !== undefined) type = (await libvirt.getJobStats(domain, STATS_COMPLETED)).type;
    } catch (caught) {
      log.error({ reason: caught }, 'Failed to get final job stats for completed backup.');
    }
    const errorText = job.get('errmsg');
    if (domain !== undefined && ending.Mode === 'Push') await this.#waitForImages(domain);
    this.#finish(ending, type, typeof errorText === 'string' ? errorText : undefined);
  }

  endWithVm(): void {
    const { metadata, log } = this.#deps;
    const running = metadata.backup.load();
    if (!isOpen(running) || this.#isStarting) return;
    log.info('The backup ends with its VM');
    const outcome = decideOutcome(running.Mode, JOB_TYPE.cancelled, undefined);
    // Whoever pulled and did not say that it was enough has not got everything.
    const isCut = running.Mode === 'Pull' && !this.#isAborted;
    this.#conclude(running, isCut ? { isFailed: true, message: 'the VM ended before its backup' } : outcome);
  }

  async catchUp(name: string): Promise<void> {
    const { libvirt, metadata, log } = this.#deps;
    this.#leftoverEnds = 0;
    const running = metadata.backup.load();
    if (this.#isStarting || !(isOpen(running) || this.#mayHaveLeftover)) return;
    try {
      const domain = await findDomain(libvirt, name);
      if (!isOpen(running)) return await this.#endLeftover(domain);
      if (domain !== undefined && isBackup(await libvirt.getJobStats(domain, STATS_RUNNING))) return;
      const last = domain === undefined ? undefined : await libvirt.getJobStats(domain, STATS_COMPLETED);
      const isKnown = last !== undefined && isBackup(last);
      // libvirt forgets how a job ended when it is started again.
      const text = isKnown ? last.params.get('errmsg') : 'the end of the backup was missed while libvirt was away';
      this.#finish(running, isKnown ? last.type : JOB_TYPE.failed, typeof text === 'string' ? text : undefined);
    } catch (caught) {
      log.error({ reason: caught }, 'Could not find out about the backup');
    }
  }

  /** A backup of which the handler heard that it could not begin would stand in the way of all others. */
  async #endLeftover(domain: DomainRef | undefined): Promise<void> {
    const { libvirt, clock, log } = this.#deps;
    if (!this.#mayHaveLeftover) return;
    const isLeft = async (): Promise<boolean> =>
      domain !== undefined && isBackup(await libvirt.getJobStats(domain, STATS_RUNNING));
    if (domain !== undefined && (await isLeft())) {
      log.warn('A backup runs whose beginning libvirt could not tell, ending it');
      await libvirt.abortJob(domain);
      this.#leftoverEnds++;
      const giveUpAtMs = clock.now() + RELEASE_LIMIT_MS;
      while ((await isLeft()) && clock.now() < giveUpAtMs) await clock.sleep(RELEASE_POLL_MS);
    }
    this.#mayHaveLeftover = false;
  }

  /**
   * libvirt tells of the end of a backup before QEMU closes the images, and until then an image is not whole: whoever
   * hears of the end may copy it at once.
   */
  async #waitForImages(domain: DomainRef): Promise<void> {
    const { libvirt, clock, log } = this.#deps;
    const directory = this.#directory;
    if (directory === undefined) return;
    const giveUpAtMs = clock.now() + RELEASE_LIMIT_MS;
    try {
      const isOpen = async (): Promise<boolean> =>
        parseBlockNodes(await libvirt.monitorCommand(domain, QUERY_BLOCK_NODES)).some(({ file }) =>
          file.startsWith(`${directory}/`),
        );
      while ((await isOpen()) && clock.now() < giveUpAtMs) await clock.sleep(RELEASE_POLL_MS);
    } catch (caught) {
      log.debug({ reason: caught }, 'Could not see whether the images of the backup are closed');
    }
  }

  #finish(ending: BackupMetadata, jobType: number, errorText: string | undefined): void {
    const { log } = this.#deps;
    if (jobType === JOB_TYPE.completed) log.info('Backup has been completed successfully');
    if (jobType === JOB_TYPE.cancelled) log.info('Backup has been aborted');
    if (jobType === JOB_TYPE.failed) log.info('Backup has failed');
    this.#conclude(ending, decideOutcome(ending.Mode, jobType, errorText));
  }

  #conclude(ending: BackupMetadata, { isFailed, message }: BackupOutcome): void {
    const { exporter, metadata, clock, log } = this.#deps;
    exporter.stop();
    if (metadata.backup.load()?.Name !== ending.Name) {
      log.warn('Backup metadata changed or was cleared before update could complete.');
      return;
    }
    const EndTimestamp = renderTime(clock.now());
    this.#record({ Failed: isFailed, Completed: true, BackupMsg: message, EndTimestamp });
  }

  #record(news: Partial<BackupMetadata>): void {
    this.#deps.metadata.backup.update((backup) => ({ ...backup, ...news }));
  }
}
