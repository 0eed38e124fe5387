import type { Connection } from '@virtwire/libvirt';
import { startReaper } from '@virtwire/host';
import { objectFields, startSpan } from '@virtwire/telemetry';
import type { Logger } from '@virtwire/telemetry';
import type { CmdServer } from './cmd-server/server.ts';
import { startCmdServer } from './cmd-server/server.ts';
import type { Clock } from './config/clock.ts';
import type { LauncherFlags } from './config/flags.ts';
import { launcherPaths } from './config/paths.ts';
import { LauncherError } from './errors.ts';
import type { HandlerLine } from './events/notify-sender.ts';
import { createHandlerLine } from './events/notify-sender.ts';
import { subscribeToDomainEvents } from './events/subscribe.ts';
import { createGraph } from './graph.ts';
import type { LauncherGraph } from './graph.ts';
import { connectToDaemon } from './libvirt-daemon/connect.ts';
import { libvirtPort } from './libvirt-daemon/libvirt-adapter.ts';
import { migrationCalls } from './libvirt-daemon/migration-adapter.ts';
import { forwardFirmwareLog } from './libvirt-daemon/seabios-log.ts';
import type { Sidecars } from './hooks/sidecars.ts';
import type { RunningDaemons } from './libvirt-daemon/start.ts';
import { warmUpLibvirt } from './libvirt-daemon/warm-up.ts';
import { waitForFinalNotification } from './monitor/final-notification.ts';
import { killByForce, killInTime } from './monitor/kill-by-force.ts';
import type { ForceDeps } from './monitor/kill-by-force.ts';
import { shutDownGracefully } from './monitor/node-shutdown.ts';
import { monitorQemu } from './monitor/qemu-monitor.ts';
import { readPidFile, readProcessState } from './monitor/qemu-process.ts';
import { waitForDomain } from './monitor/wait-for-domain.ts';
import type { GuestNetworkDeps } from './network/guest-network.ts';
import { createPreparation, hasHypervisor } from './preparation.ts';
import type { Preparation } from './preparation.ts';
import { readStandaloneVmi, STANDALONE_VMI } from './standalone/standalone-vmi.ts';

/** What a launcher gets from the process that it is. */
export interface LauncherProcess {
  readonly flags: LauncherFlags;
  readonly env: NodeJS.ProcessEnv;
  readonly clock: Clock;
  readonly log: Logger;
  readonly daemons: RunningDaemons;
  /** Hook sidecars, where there are any. */
  readonly sidecars?: Sidecars | undefined;
  readonly writeLine: (line: string) => void;
  /** Aborted by the first signal that asks the launcher to end. */
  readonly stopSignal: AbortSignal;
  /** Called once, when the launcher serves and all that a start needs is loaded. */
  readonly onReady?: () => void;
  /** Stands for the pod's links where there is no pod. Default: those of this process' network namespace. */
  readonly podNetwork?: Pick<GuestNetworkDeps, 'readLinks' | 'startServers'>;
}

interface Running {
  readonly connection: Connection;
  readonly graph: LauncherGraph;
  readonly server: CmdServer;
  readonly guestConnection: Connection;
  readonly line: HandlerLine;
  readonly preparation: Preparation;
  /** Reads what firmware logs, as soon as it can; undefined where it cannot. */
  readonly firmwareLog: Promise<Disposable | undefined>;
  readonly ending: AbortController;
  /** Rejects when something ends without which the VM cannot go on. */
  readonly failure: Promise<never>;
}

/** No VM fails over what its firmware would say. */
async function readFirmwareLog({ log, writeLine }: LauncherProcess, pipe: string): Promise<Disposable | undefined> {
  try {
    return await forwardFirmwareLog(pipe, writeLine);
  } catch (caught) {
    log.error({ reason: caught }, 'failed to read the log of the firmware');
    return undefined;
  }
}

/** QEMUs are libvirt's children, and come to this process when they go into the background. */
const isOrphan = (comm: string): boolean => comm.startsWith('qemu-system');

async function start(launcher: LauncherProcess): Promise<Running> {
  const { flags, clock, log, daemons } = launcher;
  const paths = launcherPaths(flags);
  const connecting = startSpan(log, 'connect to libvirt');
  const connection = await connectToDaemon(daemons.socketPath, flags.runAsNonroot, daemons.name, log);
  connecting.end();
  const guestConnection = await connectToDaemon(daemons.socketPath, flags.runAsNonroot, daemons.name, log);
  const libvirt = libvirtPort(connection);
  const line = createHandlerLine(paths.notifyPipe, log);
  const ending = new AbortController();
  const failure = Promise.withResolvers<never>();
  const preparation = createPreparation(flags, launcher.env, log, () => connection.getLibVersion(), {
    ...launcher.podNetwork,
    preCloudInitIso: launcher.sidecars?.preCloudInitIso,
    onFailure: failure.reject,
  });
  const graph = createGraph(flags, paths, {
    libvirt,
    guestLibvirt: libvirtPort(guestConnection),
    notify: line,
    preparation,
    iommu: preparation.iommu,
    migration: { ...preparation.migration, calls: migrationCalls(connection) },
    sidecars: launcher.sidecars,
    tools: preparation.tools,
    clock,
    log,
    writeLine: launcher.writeLine,
    podName: launcher.env['POD_NAME'] ?? '',
  });
  const [server] = await Promise.all([
    startCmdServer(graph.handlers, paths, clock, log),
    subscribeToDomainEvents(connection, graph.loop, log).then(() => {
      // Not before the registrations, which would wait for the probe, and with them the launcher's readiness.
      void warmUpLibvirt(libvirt, hasHypervisor(flags) ? 'kvm' : 'qemu', log);
    }),
  ]);
  void graph.loop.run(ending.signal);
  server.markReady();
  log.info('Marked as ready');
  launcher.onReady?.();
  const firmwareLog = readFirmwareLog(launcher, paths.seaBiosPipe);
  void preparation.warmUp();
  return {
    ...{ connection, guestConnection, graph, server, line, preparation, firmwareLog, ending },
    failure: failure.promise,
  };
}

function forceOf({ clock, log }: LauncherProcess, { lifecycle, vmi }: LauncherGraph): ForceDeps {
  return {
    clock,
    log,
    kill: () => lifecycle.kill({ metadata: vmi }, log),
    terminate: (pid) => process.kill(pid, 'SIGTERM'),
  };
}

/** Process 1 of the pod collects what ends in it; a lost signal is made up for. */
function remindInit(): void {
  try {
    process.kill(1, 'SIGCHLD');
  } catch {
    // Not ours to signal outside a pod, and then not ours to remind.
  }
}

async function watch(launcher: LauncherProcess, { graph }: Running): Promise<void> {
  const { flags, clock, log, stopSignal } = launcher;
  const { nudge, metadata } = graph;
  const ended = new AbortController();
  const isExitingEarly = (): boolean => graph.isExitingEarly();
  const isDomainGone = (): boolean => graph.isDeleteTold() || graph.sightings.isGone();
  const onShutdownSignal = (): void => {
    const shutdown = (): Promise<void> => graph.lifecycle.shutdown({ metadata: graph.vmi }, log);
    void shutDownGracefully({ clock, log, metadata, shutdown }, ended.signal);
  };
  const force = forceOf(launcher, graph);
  const readPid = (): number | undefined => readPidFile(launcherPaths(flags).qemuPidFile);
  await monitorQemu(
    {
      clock,
      log,
      readPid,
      readProcessState,
      onShutdownSignal,
      kill: (pid) => killByForce(force, pid),
      isExitingEarly,
      isDomainGone,
      onZombie: remindInit,
      nudge,
    },
    {
      domainName: graph.domainName,
      startTimeoutMs: flags.qemuTimeoutMs,
      gracePeriodSeconds: flags.gracePeriodSeconds,
    },
    stopSignal,
  );
  ended.abort();
  await Promise.all([graph.migration.settle(), graph.settleWork()]);
  await launcher.sidecars?.shutdown();
  await waitForFinalNotification({ clock, log, isDeleteSent: graph.deleteSent, kill: () => killInTime(force) });
}

async function stop({ daemons, log }: LauncherProcess, running: Running): Promise<void> {
  running.ending.abort();
  const { server, connection, guestConnection, line, preparation, firmwareLog, graph } = running;
  graph.stop();
  (await firmwareLog)?.[Symbol.dispose]();
  await Promise.all([
    server.stop(),
    connection.close(),
    guestConnection.close(),
    line[Symbol.asyncDispose](),
    preparation[Symbol.asyncDispose](),
  ]);
  await daemons.stop();
  log.info('Exiting...');
}

/** Without a handler the VMI comes from the environment, and what keeps it from starting ends the launcher. */
async function startStandalone({ env, flags, log }: LauncherProcess, { graph }: Running): Promise<void> {
  const text = env[STANDALONE_VMI];
  if (text === undefined) return;
  const vmi = await readStandaloneVmi(text, flags);
  const vmiLog = log.child(objectFields(vmi));
  vmiLog.info('Standalone mode: syncing VMI');
  try {
    await graph.sync.sync(vmi, undefined, vmiLog);
  } catch (caught) {
    throw LauncherError.from(caught, 'StandaloneFailed', 'Failed to sync VMI, quitting: ');
  }
}

async function live(launcher: LauncherProcess, running: Running): Promise<void> {
  const { clock, log, flags, stopSignal } = launcher;
  const { graph, connection } = running;
  await startStandalone(launcher, running);
  const hasDomain = await waitForDomain(
    {
      clock,
      log,
      listDomains: () => libvirtPort(connection).listAllDomains(),
      wasSeen: () => graph.sightings.hasCome(),
      isExitingEarly: () => graph.isExitingEarly(),
      journal: () => graph.sync.journal(),
      nudge: graph.nudge,
    },
    flags.qemuTimeoutMs,
    stopSignal,
  );
  if (hasDomain) await watch(launcher, running);
}

/**
 * Runs a launcher from the connection to libvirt to the end of its VM.
 *
 * @throws {LauncherError} what must end the process with code 2
 * @source KubeVirt v1.9.0 cmd/virt-launcher/virt-launcher.go:350
 */
export async function runLauncher(launcher: LauncherProcess): Promise<void> {
  using _reaper =
    process.pid === 1 ? startReaper({ isOwnChild: (pid) => launcher.daemons.owns(pid), isOrphan }) : undefined;
  const running = await start(launcher);
  try {
    await Promise.race([live(launcher, running), running.failure]);
  } finally {
    await stop(launcher, running);
  }
}
