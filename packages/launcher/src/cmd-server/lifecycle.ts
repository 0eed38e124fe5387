import type { CmdHandlers, cmdV1 } from '@virtwire/shared-proto';
import type { Logger } from '@virtwire/telemetry';
import type { Lifecycle } from '../domain/lifecycle.ts';
import type { DomainSync } from '../domain/sync.ts';
import type { DomainWriter } from '../domain/wire-domain.ts';
import type { SyncOptions } from './complete-options.ts';
import { completeOptions } from './complete-options.ts';
import type { Plugins } from '../hooks/plugins.ts';
import { vmiRpc } from './vmi-rpc.ts';

/** What the methods need. */
export interface LifecycleRpcDeps {
  readonly sync: DomainSync<SyncOptions>;
  readonly lifecycle: Lifecycle;
  readonly log: Logger;
  /** Name of this pod; empty when unknown. */
  readonly podName: string;
  /** Ends a launcher that still waits for its domain. */
  readonly exitEarly: () => void;
  readonly writer: Pick<DomainWriter, 'noteOptions'>;
  readonly plugins: Pick<Plugins, 'set'>;
}

/** The plugins that a request lists, as JSON; empty when it lists none. */
export function pluginsText(options: cmdV1.VirtualMachineOptions | undefined): string {
  return Buffer.from(options?.pluginsJson ?? []).toString('utf8');
}

/** Methods that start, pause and end the VM. `@source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/cmd-server/server.go` */
export function lifecycleHandlers(deps: LifecycleRpcDeps) {
  const { sync, lifecycle, log, podName, exitEarly, writer, plugins } = deps;
  return {
    syncVirtualMachine: vmiRpc<cmdV1.VMIRequest>(
      log,
      { success: 'Synced vmi', failure: 'Failed to sync vmi' },
      async (vmi, vmiLog, { options }, context) => {
        plugins.set(pluginsText(options));
        if (options !== undefined) writer.noteOptions(options, context?.userAgent);
        await sync.sync(vmi, options === undefined ? undefined : completeOptions(vmi, options), vmiLog);
      },
    ),
    pauseVirtualMachine: vmiRpc<cmdV1.VMIRequest>(
      log,
      { success: 'Paused vmi', failure: 'Failed to pause vmi' },
      (vmi, vmiLog) => lifecycle.pause(vmi, vmiLog),
    ),
    unpauseVirtualMachine: vmiRpc<cmdV1.VMIRequest>(
      log,
      { success: 'Unpaused vmi', failure: 'Failed to unpause vmi' },
      (vmi, vmiLog) => lifecycle.unpause(vmi, vmiLog),
    ),
    shutdownVirtualMachine: vmiRpc<cmdV1.VMIRequest>(
      log,
      { success: 'Signaled vmi shutdown', failure: 'Failed to signal shutdown for vmi' },
      (vmi, vmiLog) => lifecycle.shutdown(vmi, vmiLog),
    ),
    killVirtualMachine: vmiRpc<cmdV1.VMIRequest>(
      log,
      { success: 'Signaled vmi kill', failure: 'Failed to kill vmi' },
      (vmi, vmiLog) => lifecycle.kill(vmi, vmiLog),
    ),
    deleteVirtualMachine: vmiRpc<cmdV1.VMIRequest>(
      log,
      { success: 'Signaled vmi deletion', failure: 'Failed to signal deletion for vmi' },
      (vmi, vmiLog) => lifecycle.delete(vmi, vmiLog),
    ),
    signalTargetPodCleanup: vmiRpc<cmdV1.VMIRequest>(
      log,
      { success: 'Handled target pod cleanup', failure: 'Failed to signal target pod cleanup' },
      (vmi, vmiLog) => {
        if (podName !== '' && vmi.status?.migrationState?.targetPod === podName) {
          vmiLog.info(`Signaled target pod ${podName} to cleanup`);
          exitEarly();
        }
        return Promise.resolve();
      },
    ),
  } satisfies CmdHandlers;
}
