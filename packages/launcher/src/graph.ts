import { join } from 'node:path/posix';
import type { CmdHandlers } from '@virtwire/shared-proto';
import { domainName, parseDomainXml, renderDomainXml } from '@virtwire/vm-model';
import type { DomainSpec, Vmi } from '@virtwire/vm-model';
import type { Logger } from '@virtwire/telemetry';
import type { CredentialPropagation } from './access-credentials/propagation.ts';
import { createCredentialPropagation } from './access-credentials/propagation.ts';
import { createAgentPoller } from './agent/poller.ts';
import { createAgentReaction } from './agent/react.ts';
import { createRawAgentData } from './agent/raw-data.ts';
import { sharingAnswers } from './agent/shared-answers.ts';
import { createAgentStore } from './agent/store.ts';
import { createBackupExporter } from './backup/exporter.ts';
import type { BackupManager } from './backup/manager.ts';
import { createBackupManager } from './backup/manager.ts';
import { backupHandlers } from './cmd-server/backup.ts';
import type { SyncOptions } from './cmd-server/complete-options.ts';
import { guestHandlers } from './cmd-server/guest.ts';
import { lifecycleHandlers } from './cmd-server/lifecycle.ts';
import { liveUpdateHandlers } from './cmd-server/live-update.ts';
import { migrationHandlers } from './cmd-server/migration.ts';
import { queryHandlers } from './cmd-server/queries.ts';
import { statsHandlers } from './cmd-server/vm-stats.ts';
import type { Clock } from './config/clock.ts';
import type { LauncherFlags } from './config/flags.ts';
import type { LauncherPaths } from './config/paths.ts';
import type { ToolPort } from './disks/ports.ts';
import { createDataStores } from './domain/data-stores.ts';
import { createDefiner } from './domain/define.ts';
import { createDirtyRate } from './domain/dirty-rate.ts';
import type { Freezer } from './domain/freeze.ts';
import { createFreezer } from './domain/freeze.ts';
import { createHostDevicePlug } from './domain/hotplug-host-devices.ts';
import { createGuestTimeSync } from './domain/guest-time.ts';
import { createLaunchSecurity } from './domain/launch-security.ts';
import type { LibvirtPort } from './domain/libvirt-port.ts';
import type { Lifecycle } from './domain/lifecycle.ts';
import { createLifecycle } from './domain/lifecycle.ts';
import type { MemoryDumper } from './domain/memory-dump.ts';
import { createMemoryDumper } from './domain/memory-dump.ts';
import { isMigrating } from './domain/migrating.ts';
import { createMutex } from './domain/mutex.ts';
import type { PausedSet } from './domain/paused-set.ts';
import { createPausedSet } from './domain/paused-set.ts';
import { createDomainStats } from './domain/stats.ts';
import type { DomainSync, SyncDeps, VmiPreparation } from './domain/sync.ts';
import { createDomainSync } from './domain/sync.ts';
import { createDomainWriter } from './domain/wire-domain.ts';
import type { DomainWriter } from './domain/wire-domain.ts';
import { LauncherError } from './errors.ts';
import { createDomainSightings } from './events/domain-sightings.ts';
import type { DomainSightings } from './events/domain-sightings.ts';
import type { K8sEvent, VmiReference } from './events/k8s-event.ts';
import { renderK8sEvent } from './events/k8s-event.ts';
import type { EventLoop } from './events/loop.ts';
import { createEventLoop } from './events/loop.ts';
import type { NotifyPort } from './events/notify-port.ts';
import { createEventProcessor } from './events/processor.ts';
import { createTargetMonitor } from './events/target-monitor.ts';
import { createDomainHooks } from './hooks/domain-hooks.ts';
import { createPlugins } from './hooks/plugins.ts';
import type { Sidecars } from './hooks/sidecars.ts';
import { createQemuLogForwarder } from './libvirt-daemon/qemu-log.ts';
import type { MetadataCache } from './metadata/cache.ts';
import { createMetadataCache } from './metadata/cache.ts';
import type { MigrationParts, MigrationWorld } from './migration/parts.ts';
import { createMigrationParts } from './migration/parts.ts';
import type { MigrationSource } from './migration/source.ts';
import type { TargetPreparation } from './migration/target.ts';
import { settleLongWork } from './monitor/long-work.ts';
import { createNudge } from './monitor/nudge.ts';
import type { Nudge } from './monitor/nudge.ts';

/** Where the sidecars of plugins have their sockets. */
const PLUGIN_DIR = '/var/run/kubevirt-plugin';
/** Firmware that SEV guests boot. */
const SEV_FIRMWARE = 'OVMF_CODE.cc.fd';

/** The outside world of a launcher's objects. */
export interface GraphDeps {
  readonly libvirt: LibvirtPort;
  /**
   * The same domain over a connection of its own, for calls that wait for the guest: a guest that does not answer takes
   * all places of a connection, and no other call gets through.
   */
  readonly guestLibvirt: LibvirtPort;
  readonly notify: NotifyPort;
  readonly preparation: VmiPreparation<SyncOptions> & TargetPreparation;
  /** The descriptor for IOMMUFD, where pods may have one. */
  readonly iommu?: SyncDeps<SyncOptions>['iommu'];
  readonly migration: MigrationWorld;
  /** Hook sidecars, where there are any. */
  readonly sidecars?: Sidecars | undefined;
  readonly tools: ToolPort;
  readonly clock: Clock;
  readonly log: Logger;
  /** Writes one line of JSON where the launcher logs. */
  readonly writeLine: (line: string) => void;
  readonly podName: string;
}

/** The outside world, with domains read so that their tracked disks are known whatever libvirt tells. */
interface TrackingDeps extends GraphDeps {
  readonly parseSpec: (xml: string) => DomainSpec;
}

/** All objects of a launcher, at rest. */
export interface LauncherGraph {
  readonly vmi: VmiReference;
  readonly domainName: string;
  readonly handlers: CmdHandlers;
  readonly loop: EventLoop;
  readonly lifecycle: Lifecycle;
  readonly sync: DomainSync<SyncOptions>;
  readonly metadata: MetadataCache;
  readonly migration: MigrationParts;
  readonly paused: PausedSet;
  /** What libvirt's events have told of the domain, also before the handler was told. */
  readonly sightings: Pick<DomainSightings, 'hasCome' | 'isGone'>;
  /** Nudged at each event of libvirt. */
  readonly nudge: Nudge;
  /** Resolves when the handler was told of the domain's end. */
  readonly deleteSent: Promise<unknown>;
  /** Whether the handler was told that the domain is deleted. */
  isDeleteTold(): boolean;
  isExitingEarly(): boolean;
  /** Waits, when the VM has ended, until it is noted what became of all that it cut off. */
  readonly settleWork: () => Promise<void>;
  /** Ends what works in the background. */
  stop(): void;
}

function agentParts(deps: GraphDeps, flags: LauncherFlags, name: string, push: EventLoop['pushAgent']) {
  const store = createAgentStore();
  const { guestLibvirt: libvirt, clock, log } = deps;
  const poller = createAgentPoller({ libvirt, store, clock, log, onUpdate: push }, name, {
    sysMs: flags.agentSysIntervalMs,
    fileMs: flags.agentFileIntervalMs,
    userMs: flags.agentUserIntervalMs,
    versionMs: flags.agentVersionIntervalMs,
    fsfreezeMs: flags.fsfreezeStatusIntervalMs,
  });
  return { store, reaction: createAgentReaction(poller, log) };
}

/** Preparing a VMI, here or for its arrival, also starts what keeps the credentials in its guest up to date. */
function withCredentials(preparation: GraphDeps['preparation'], credentials: CredentialPropagation) {
  return {
    ...preparation,
    async preStart(vmi, spec, options, log) {
      const prepared = await preparation.preStart(vmi, spec, options, log);
      credentials.start(vmi, log);
      return prepared;
    },
    async prepareTarget(vmi, options, log) {
      const prepared = await preparation.prepareTarget(vmi, options, log);
      try {
        credentials.start(vmi, log);
      } catch (caught) {
        throw LauncherError.from(caught, 'CredentialsFailed', 'pre-start pod-setup failed: ');
      }
      return prepared;
    },
  } satisfies GraphDeps['preparation'];
}

function tracking(deps: GraphDeps): TrackingDeps {
  const dataStores = createDataStores();
  return {
    ...deps,
    parseSpec: (xml) => dataStores.complete(parseDomainXml(xml)),
    preparation: {
      ...deps.preparation,
      async convert(vmi, options) {
        const spec = await deps.preparation.convert(vmi, options);
        dataStores.remember(spec);
        return spec;
      },
      async prepareTarget(vmi, options, log) {
        const prepared = await deps.preparation.prepareTarget(vmi, options, log);
        dataStores.remember(prepared.spec);
        return prepared;
      },
    },
  };
}

function freezerOf(deps: GraphDeps, paths: LauncherPaths, metadata: MetadataCache): Freezer {
  const { guestLibvirt: libvirt, tools, clock } = deps;
  return createFreezer({ libvirt, metadata, tools, clock, tpmStateDir: paths.tpmStateDir });
}

function backupParts(
  deps: TrackingDeps,
  paths: LauncherPaths,
  metadata: MetadataCache,
  freezer: Freezer,
): BackupManager {
  const { libvirt, parseSpec, clock, log } = deps;
  const nbdSocket = join(paths.socketsDir, 'backup-nbd-sock');
  const exporter = createBackupExporter({ clock, nbdSocket });
  return createBackupManager({ libvirt, freezer, exporter, metadata, parseSpec, clock, log, nbdSocket });
}

function domainParts(deps: TrackingDeps, flags: LauncherFlags, metadata: MetadataCache) {
  const { libvirt, guestLibvirt, iommu, clock, log, parseSpec } = deps;
  const paused = createPausedSet();
  const mutex = createMutex();
  const guestTime = createGuestTimeSync(guestLibvirt, clock, log);
  const lifecycle = createLifecycle({ libvirt, guestLibvirt, metadata, paused, guestTime, mutex, clock });
  const plugins = createPlugins({ clock, log, baseDir: PLUGIN_DIR });
  const renderSpec = (spec: DomainSpec): string => renderDomainXml(spec, { indent: '\t' });
  const hooks = createDomainHooks({ sidecars: deps.sidecars, plugins, renderSpec });
  const onBootDefine = (vmi: Vmi, spec: DomainSpec): Promise<string> => hooks.render(vmi, spec, 'Boot');
  const definer = createDefiner({ libvirt, metadata, parseSpec, onDefine: onBootDefine });
  const onDefine = (vmi: Vmi, spec: DomainSpec): Promise<string> => hooks.render(vmi, spec, 'MigrationTarget');
  const secretDir = join(flags.privateDir, 'secret');
  const credentials = createCredentialPropagation({ libvirt: guestLibvirt, metadata, clock, secretDir });
  const preparation = withCredentials(deps.preparation, credentials);
  const sync = createDomainSync<SyncOptions>({
    libvirt,
    preparation,
    iommu,
    definer,
    metadata,
    paused,
    mutex,
    parseSpec,
    hotplugDir: flags.hotplugDiskDir,
  });
  const shared = { libvirt, metadata, paused, mutex, guestTime, parseSpec, onDefine, clock, log };
  const world = deps.migration;
  const migration = createMigrationParts({ ...shared, world, preparation }, flags);
  const stop = (): void => {
    credentials.stop();
    migration.stop();
  };
  return { lifecycle, sync, mutex, migration, paused, plugins, stop };
}

function eventParts(
  deps: TrackingDeps,
  vmi: VmiReference,
  paths: LauncherPaths,
  metadata: MetadataCache,
  writer: DomainWriter,
  backups: BackupManager,
  settleWork: () => Promise<void>,
  isMigrationSource: () => boolean,
) {
  const { libvirt, notify, clock, log, parseSpec } = deps;
  const targetMonitor = createTargetMonitor(libvirt, metadata, clock, log);
  return createEventProcessor(
    {
      libvirt,
      notify,
      metadata,
      clock,
      log,
      parseSpec,
      renderDomain: (domain) => writer.render(domain),
      settleWork,
      completeBackup: (domain, job) => backups.complete(domain, job),
      startTargetMonitor: (name) => {
        // A guest that its own outgoing migration pauses has not arrived.
        if (!isMigrationSource()) targetMonitor.start(name);
      },
    },
    vmi,
    paths.qemuLogFile,
  );
}

function guestParts(
  deps: GraphDeps,
  flags: LauncherFlags,
  parts: { freezer: Freezer; memoryDumper: MemoryDumper; sync: DomainSync<SyncOptions> },
  metadata: MetadataCache,
  vmi: VmiReference,
): CmdHandlers {
  const { libvirt, guestLibvirt, clock, log } = deps;
  const { freezer, memoryDumper, sync } = parts;
  const sendK8sEvent = async (event: K8sEvent): Promise<void> => {
    const failure = await deps.notify.sendK8sEvent(renderK8sEvent(vmi, event));
    if (failure !== undefined) log.error({ reason: failure.error }, 'Could not send k8s event');
  };
  const areProbesPaused = (): boolean => sync.areProbesPaused();
  const shared: Pick<LibvirtPort, 'lookupDomainByName' | 'getState' | 'agentCommand'> = {
    lookupDomainByName: (wanted) => libvirt.lookupDomainByName(wanted),
    getState: (domain) => libvirt.getState(domain),
    agentCommand: sharingAnswers((domain, command: string) => libvirt.agentCommand(domain, command)),
  };
  // A reset needs no answer of the guest, and is what helps one that gives none.
  const rebooting: Pick<LibvirtPort, 'lookupDomainByName' | 'reboot' | 'reset'> = {
    lookupDomainByName: (wanted) => libvirt.lookupDomainByName(wanted),
    reboot: (domain, how) => guestLibvirt.reboot(domain, how),
    reset: sharingAnswers((domain) => libvirt.reset(domain)),
  };
  return guestHandlers({
    libvirt: guestLibvirt,
    reboot: { libvirt: rebooting, clock },
    freezer,
    memoryDumper,
    launchSecurity: createLaunchSecurity({ libvirt, firmwarePath: join(flags.ovmfPath, SEV_FIRMWARE) }),
    exec: { libvirt: guestLibvirt, clock },
    ping: { libvirt: shared, metadata, clock, log, areProbesPaused, sendK8sEvent },
    log,
  });
}

function handlersOf(
  deps: TrackingDeps,
  flags: LauncherFlags,
  parts: ReturnType<typeof domainParts> & {
    freezer: Freezer;
    memoryDumper: MemoryDumper;
    backups: BackupManager;
    store: ReturnType<typeof createAgentStore>;
    metadata: MetadataCache;
    writer: DomainWriter;
  },
  vmi: VmiReference,
  exitEarly: () => void,
): CmdHandlers {
  const { libvirt, guestLibvirt, clock, log, parseSpec } = deps;
  const { lifecycle, sync, store: agent, metadata, writer, backups, migration, plugins } = parts;
  const aliases = () => sync.aliases();
  const stats = createDomainStats({
    ...{ libvirt, agent, aliases, clock },
    migration: () => migration.source.numbers(),
    isMigrating: () => isMigrating(metadata),
  });
  const dirtyRate = createDirtyRate({ libvirt, clock, log });
  const agentData = createRawAgentData({ libvirt: guestLibvirt, clock }, domainName(vmi.namespace, vmi.name));
  const getDomain = { libvirt, metadata, agent, parseSpec, log };
  return {
    ...lifecycleHandlers({ sync, lifecycle, log, podName: deps.podName, exitEarly, writer, plugins }),
    ...queryHandlers({ libvirt, getDomain, agent, writer }),
    ...statsHandlers({ stats, dirtyRate, agentData, agent, isCollectorOn: flags.vmStatsCollector }),
    ...guestParts(deps, flags, parts, metadata, vmi),
    ...backupHandlers({ backups, checkpoints: { libvirt, parseSpec }, log }),
    ...liveUpdateParts(deps, parts),
    ...migrationHandlers({ migration, log, writer, plugins }),
  };
}

function liveUpdateParts(deps: GraphDeps, { mutex, sync }: ReturnType<typeof domainParts>): CmdHandlers {
  const { libvirt, preparation, log } = deps;
  const shared = { libvirt, mutex, parseSpec: parseDomainXml };
  return liveUpdateHandlers({
    cpus: { ...shared, readPodCpuSet: () => preparation.podCpuSet() },
    memory: shared,
    hostDevices: createHostDevicePlug({
      ...shared,
      wantedDevices: (vmi) => preparation.hostDevices(vmi),
      onPlugged: (live) => sync.noteDevices(live),
    }),
    log,
  });
}

/** What tells the launcher that its VM, or its wait for one, is over. */
function endParts(clock: Clock) {
  const nudge = createNudge(clock);
  const deleted = Promise.withResolvers<undefined>();
  let [isExitingEarly, isDeleteTold] = [false, false];
  return {
    nudge,
    sightings: createDomainSightings(),
    deleteSent: deleted.promise,
    isDeleteTold: () => isDeleteTold,
    isExitingEarly: () => isExitingEarly,
    exitEarly: (): void => {
      isExitingEarly = true;
      nudge.nudge();
    },
    noteDeleteTold: (): void => {
      isDeleteTold = true;
      deleted.resolve(undefined);
      nudge.nudge();
    },
  };
}

/** Builds the launcher's objects; nothing runs yet. */
export function createGraph(flags: LauncherFlags, paths: LauncherPaths, world: GraphDeps): LauncherGraph {
  const deps = tracking(world);
  const vmi = { namespace: flags.namespace, name: flags.name, uid: flags.uid };
  const name = domainName(flags.namespace, flags.name);
  const metadata = createMetadataCache();
  const writer = createDomainWriter();
  const ends = endParts(deps.clock);
  const { nudge, sightings } = ends;
  const qemuLog = createQemuLogForwarder(paths.qemuLogFile, deps.writeLine);
  const agent = agentParts(deps, flags, name, (shown) => loop.pushAgent(shown));
  const freezer = freezerOf(deps, paths, metadata);
  const backups = backupParts(deps, paths, metadata, freezer);
  const { guestLibvirt, clock } = deps;
  const memoryDumper = createMemoryDumper({ libvirt: guestLibvirt, metadata, clock });
  const source = (): MigrationSource => domain.migration.source;
  const settleWork = (): Promise<void> => settleLongWork({ clock, backups, memoryDumper, source });
  const loop: EventLoop = createEventLoop(
    {
      processor: eventParts(deps, vmi, paths, metadata, writer, backups, settleWork, () => source().isActive()),
      metadata,
      clock: deps.clock,
      log: deps.log,
      onArrived(event) {
        if (event.domainName === name) sightings.note(event);
        nudge.nudge();
      },
      onHandled(event) {
        agent.reaction.react(event);
        if (event.lifecycle !== undefined) qemuLog.forward();
        nudge.nudge();
      },
      onReconnected: (domain) => backups.catchUp(domain),
      onTold(what) {
        if (what === 'deleted') ends.noteDeleteTold();
      },
    },
    flags.uid,
  );
  const domain = domainParts(deps, flags, metadata);
  return {
    vmi,
    domainName: name,
    handlers: handlersOf(
      deps,
      flags,
      { ...domain, freezer, memoryDumper, backups, store: agent.store, metadata, writer },
      vmi,
      ends.exitEarly,
    ),
    loop,
    ...domain,
    metadata,
    settleWork,
    ...ends,
  };
}
