import { isConnectionLoss, unwrap } from '@virtwire/shared-proto';
import type { CmdClient, ProtoError } from '@virtwire/shared-proto';
import { withDocuments } from '@virtwire/shared-proto/documents';
import { startSpan } from '@virtwire/telemetry';
import type { Span } from '@virtwire/telemetry';
import type { DomainStore } from '../domain-watch/domain-store.ts';
import { errorText, HandlerError, hasErrorCode } from '../errors.ts';
import type { EventRecorder, EventType } from '../events/recorder.ts';
import type { Launchers } from '../launchers/launchers.ts';
import { vmiRef } from '../model.ts';
import type { Vmi } from '../model.ts';
import type { Isolation, NodeParts } from '../prepare/parts.ts';
import type { Expectations } from './expectations.ts';
import type { Executors } from './execute.ts';
import { finalCleanup } from './final-cleanup.ts';
import type { IoErrorRetry } from './io-error-retry.ts';
import type { Pass } from './pass.ts';
import { adaptToLauncher } from './adapt-to-launcher.ts';

/** Puts keys back into the work queue. */
export interface Requeuer {
  after(key: string, afterMs: number, isSafetyNet: boolean): void;
  rateLimited(key: string): void;
}

/** What the executors work with. */
export interface ExecutorsDeps {
  readonly launchers: Launchers;
  readonly parts: NodeParts;
  readonly events: EventRecorder;
  readonly requeue: Requeuer;
  readonly expectations: Expectations;
  readonly ioErrorRetry: IoErrorRetry;
  readonly domains: DomainStore;
  readonly now: () => number;
  /** Told when everything of a VMI was removed from this node. */
  readonly onCleanedUp: (vmi: Vmi) => void;
}

const HOTPLUG_RETRY_MS = 1_000;
const CONTAINER_DISK_RETRY_MS = 1_000;
const ISOLATION_PREFIX = 'failed to detect isolation for launcher pod: ';
const CONNECT_PREFIX = 'unable to create virt-launcher client connection: ';
/** KubeVirt's handler looks for the singular, which no launcher ever prints. */
const EFI_MISSING = /EFI OVMF roms? missing/;

function withPrefix(prefix: string, error: unknown): HandlerError {
  const code = error instanceof HandlerError ? error.code : 'LauncherUnreachable';
  return new HandlerError(code, `${prefix}${errorText(error)}`, { cause: error });
}

/** Ends a span with the outcome of the work that it measures. */
async function timed<T>(span: Span, work: () => Promise<T>): Promise<T> {
  try {
    const result = await work();
    span.end();
    return result;
  } catch (error) {
    span.fail(error);
    throw error;
  }
}

function missing(what: string): HandlerError {
  return new HandlerError('Internal', `this handler cannot ${what} yet`);
}

/** Executors of the steps that stop a VM. @source KubeVirt v1.9.0 pkg/virt-handler/vm.go:1642-1800 */
function stopExecutors(deps: ExecutorsDeps, tell: (pass: Pass, type: EventType, reason: string, text: string) => void) {
  const { launchers, requeue } = deps;
  const verified = async (pass: Pass): Promise<CmdClient> => (pass.client ??= await launchers.getVerified(pass.vmi));
  return {
    pingLauncher: async (_step, pass) => {
      await verified(pass);
    },
    signalShutdown: async ({ isFirst, requeueAfterMs }, pass) => {
      const client = await verified(pass);
      const answer = await withDocuments(client).shutdownVirtualMachine({ vmi: pass.vmi });
      if (!answer.ok && answer.error.code !== 'Disconnected') throw answer.error;
      pass.log.info(`Signaled graceful shutdown for ${pass.vmi.metadata.name}`);
      if (isFirst) tell(pass, 'Normal', 'ShuttingDown', 'Signaled Graceful Shutdown');
      requeue.after(pass.key, requeueAfterMs, false);
    },
    killDomain: async ({ because }, pass) => {
      pass.log.info(because);
      const client = await verified(pass);
      const answer = await withDocuments(client).killVirtualMachine({ vmi: pass.vmi });
      if (!answer.ok && answer.error.code !== 'Disconnected') throw answer.error;
      tell(pass, 'Normal', 'Deleted', 'VirtualMachineInstance stopping');
    },
    deleteDomain: async (_step, pass) => {
      const { uid, name } = pass.vmi.metadata;
      try {
        const client = await verified(pass).catch(() => undefined);
        if (client === undefined) return; // a launcher that cannot be reached holds nothing that could be deleted
        pass.log.info(`Signaled deletion for ${name}`);
        tell(pass, 'Normal', 'Deleted', 'Signaled Deletion');
        const answer = await withDocuments(client).deleteVirtualMachine({ vmi: pass.vmi });
        if (!answer.ok && !isConnectionLoss(answer.error)) throw answer.error;
      } finally {
        pass.client = undefined;
        await launchers.close(uid);
      }
    },
  } satisfies Partial<Executors>;
}

function findIsolation({ launchers, parts }: ExecutorsDeps): (pass: Pass) => Promise<Isolation> {
  return async (pass) => {
    if (pass.isolation !== undefined) return pass.isolation;
    const socketFile = launchers.info(pass.vmi.metadata.uid)?.socketFile ?? '';
    try {
      pass.isolation = await parts.detectIsolation(socketFile);
      return pass.isolation;
    } catch (error) {
      throw withPrefix(ISOLATION_PREFIX, error);
    }
  };
}

/** Executors that get a node ready for a start. @source KubeVirt v1.9.0 pkg/virt-handler/vm.go:1933-2060 */
function prepareExecutors(deps: ExecutorsDeps, isolationOf: (pass: Pass) => Promise<Isolation>) {
  const { launchers, parts, requeue } = deps;
  const connected = async ({ vmi, log }: Pass): Promise<CmdClient> => {
    const held = launchers.info(vmi.metadata.uid)?.client;
    return held ?? timed(startSpan(log, 'connect to the launcher'), () => launchers.get(vmi));
  };
  return {
    connectLauncher: async (_step, pass) => {
      try {
        pass.client = await connected(pass);
      } catch (error) {
        throw withPrefix(CONNECT_PREFIX, error);
      }
    },
    openCgroup: async (_step, pass) => parts.cgroup?.open(pass.vmi),
    awaitContainerDisks: async (_step, pass) => {
      const info = launchers.info(pass.vmi.metadata.uid);
      if (info?.client === undefined) {
        requeue.rateLimited(pass.key);
        return 'stop';
      }
      if (await parts.containerDisks.ready(pass.vmi, info.notInitializedSinceMs)) return undefined;
      requeue.after(pass.key, CONTAINER_DISK_RETRY_MS, false);
      return 'stop';
    },
    mountContainerDisks: async (_step, pass) => {
      await timed(startSpan(pass.log, 'container disks'), () => parts.containerDisks.mountAndVerify(pass.vmi));
    },
    mountHotplugVolumes: async (_step, pass) => {
      try {
        const state = await parts.hotplug?.mount(pass.vmi);
        if (state === 'waiting') requeue.after(pass.key, HOTPLUG_RETRY_MS, false);
      } catch (error) {
        if (!hasErrorCode(error, 'ENOENT')) throw error;
        deps.events.event(vmiRef(pass.vmi), 'Warning', 'HotplugFailed', errorText(error));
      }
    },
    setUpNetwork: async ({ networks }, pass) => {
      const launcher = await isolationOf(pass);
      try {
        await timed(startSpan(pass.log, 'network phase 1'), () => parts.network.setUp(pass.vmi, networks, launcher));
      } catch (error) {
        const code = hasErrorCode(error, 'CriticalNetwork') ? 'CriticalNetwork' : 'Internal';
        throw new HandlerError(code, `failed to configure vmi network: ${errorText(error)}`, { cause: error });
      }
    },
    prepareDevices: async ({ vmi }, pass) => {
      const launcher = await isolationOf(pass);
      await timed(startSpan(pass.log, 'devices'), () => parts.devices.prepare(vmi, launcher));
    },
    adjustMemlock: async (_step, pass) => {
      if (parts.memlock === undefined) throw missing('raise the limit of locked memory');
      try {
        await parts.memlock.adjust(pass.vmi, await isolationOf(pass));
      } catch (error) {
        throw withPrefix('failed to adjust resources: ', error);
      }
    },
  } satisfies Partial<Executors>;
}

/** A guest without a default route for IPv6 runs all the same. */
async function advertiseRouter(
  { routers }: NodeParts,
  pass: Pass,
  isolationOf: (pass: Pass) => Promise<Isolation>,
): Promise<void> {
  if (routers === undefined || routers.isServing(pass.vmi.metadata.uid)) return;
  try {
    routers.start(pass.vmi, await isolationOf(pass));
  } catch (error) {
    pass.log.warn({ reason: error }, `failed to advertise the IPv6 gateway: ${errorText(error)}`);
  }
}

/** Executors of a VM that runs. @source KubeVirt v1.9.0 pkg/virt-handler/vm.go:2030-2120 */
function runningExecutors(deps: ExecutorsDeps, isolationOf: (pass: Pass) => Promise<Isolation>) {
  const { parts, launchers, events } = deps;
  return {
    plugSriov: async (_step, pass) => {
      try {
        const client = await launchers.getVerified(pass.vmi);
        await parts.memlock?.adjust(pass.vmi, await isolationOf(pass));
        pass.log.debug('sending hot-plug host-devices command');
        unwrap(await withDocuments(client).hotplugHostDevices({ vmi: pass.vmi }));
      } catch (error) {
        pass.log.error({ reason: error }, `failed to hot-plug SR-IOV interfaces: ${errorText(error)}`);
      }
    },
    dumpMemory: async ({ path }, pass) => {
      try {
        const client = await launchers.getVerified(pass.vmi);
        unwrap(await withDocuments(client).virtualMachineMemoryDump({ vmi: pass.vmi, dumpPath: path }));
      } catch (error) {
        if (hasErrorCode(error, 'Unimplemented')) {
          // What comes after the dump in this pass must not be lost over it (FM-1.5).
          pass.log.debug({ reason: errorText(error) }, 'the launcher cannot dump memory');
          return;
        }
        throw withPrefix('failed to getting memory dump: ', error);
      }
    },
    startDownwardMetrics: async (_step, pass) => {
      const launcher = await isolationOf(pass);
      await parts.downwardMetrics?.start(pass.vmi, launcher);
    },
    advertiseRouter: async (_step, pass) => await advertiseRouter(parts, pass, isolationOf),
    updateNetwork: async ({ networks }, pass) => {
      try {
        await parts.network.setUp(pass.vmi, networks, await isolationOf(pass));
      } catch (error) {
        // Collected as plain text: a critical error while plugging must not end a running VM.
        events.event(vmiRef(pass.vmi), 'Warning', 'NicHotplug', errorText(error));
        pass.collected.push(new HandlerError('Internal', errorText(error)));
      }
    },
    unmountHotplugVolumes: async (_step, pass) => parts.hotplug?.unmount(pass.vmi),
    isolateEmulator: async ({ cpuSet }, pass) => {
      if (parts.cpus === undefined) throw missing('isolate the emulator thread');
      await parts.cpus.isolateEmulator(pass.vmi, cpuSet);
    },
    makeRealtime: async (_step, pass) => {
      if (parts.cpus === undefined) throw missing('give vCPUs real-time priority');
      pass.log.info('Configuring vcpus for real time workloads');
      await parts.cpus.makeRealtime(pass.vmi);
    },
    affinePit: async (_step, pass) => {
      if (parts.cpus === undefined) throw missing('pin the PIT thread');
      pass.log.debug('Affining PIT thread');
      await parts.cpus.affinePit(pass.vmi);
    },
  } satisfies Partial<Executors>;
}

/** Builds the executors of all steps. */
export function createExecutors(deps: ExecutorsDeps): Executors {
  const { launchers, requeue, events, expectations, parts } = deps;
  const tell = (pass: Pass, type: EventType, reason: string, text: string): void =>
    events.event(vmiRef(pass.vmi), type, reason, text);
  const isolationOf = findIsolation(deps);
  return {
    ...stopExecutors(deps, tell),
    ...prepareExecutors(deps, isolationOf),
    ...runningExecutors(deps, isolationOf),
    dropExpectation: async (_step, pass) => expectations.drop(pass.key),
    requeue: async ({ afterMs, isSafetyNet = false }, pass) => requeue.after(pass.key, afterMs, isSafetyNet),
    requeueRateLimited: async (_step, pass) => requeue.rateLimited(pass.key),
    fail: async ({ code, message }) => {
      throw new HandlerError(code, message);
    },
    trackLauncher: async (_step, pass) => launchers.track(pass.vmi),
    runHook: async ({ point }, pass) => parts.hooks?.run(point, pass.vmi),
    finalCleanup: ({ uid }, pass) => finalCleanup(deps, pass, uid),
    checkIoErrorRetry: async (_step, pass) => {
      const delayMs = deps.ioErrorRetry.delayMs(pass.vmi.metadata.uid, deps.now());
      if (delayMs === 0) return undefined;
      pass.log.info(`Delay vm update for ${delayMs / 1_000} seconds`);
      requeue.after(pass.key, delayMs, false);
      return 'stop';
    },
    syncDomain: async ({ vmi, options }, pass) => {
      const client = pass.client ?? (await launchers.get(pass.vmi));
      const adapted = await adaptToLauncher(deps, pass, client, options, isolationOf);
      const answer = await timed(startSpan(pass.log, 'SyncVirtualMachine'), () =>
        withDocuments(client).syncVirtualMachine({ vmi, options: adapted }),
      );
      if (answer.ok) return;
      throw EFI_MISSING.test(answer.error.message) ? secureBootError(answer.error) : answer.error;
    },
    reportDefined: async (_step, pass) => tell(pass, 'Normal', 'Created', 'VirtualMachineInstance defined.'),
    raiseCollected: async (_step, pass) => {
      const [first, ...others] = pass.collected;
      if (first === undefined) return;
      const text = [first, ...others].map(errorText);
      throw new HandlerError('Internal', others.length === 0 ? (text[0] ?? '') : `[${text.join(', ')}]`);
    },
  };
}

function secureBootError(error: ProtoError): HandlerError {
  const message = `mismatch of Secure Boot setting and bootloaders: ${error.message}`;
  return new HandlerError('SecureBootMismatch', message, { cause: error });
}
