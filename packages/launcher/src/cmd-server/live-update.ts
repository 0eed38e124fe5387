import type { CmdHandlers, cmdV1 } from '@virtwire/shared-proto';
import type { Logger } from '@virtwire/telemetry';
import type { CpuUpdaterDeps } from '../domain/hotplug-cpus.ts';
import { updateCpus } from '../domain/hotplug-cpus.ts';
import type { HostDevicePlug } from '../domain/hotplug-host-devices.ts';
import type { MemoryUpdaterDeps } from '../domain/hotplug-memory.ts';
import { updateMemory } from '../domain/hotplug-memory.ts';
import { completeOptions } from './complete-options.ts';
import { vmiRpc } from './vmi-rpc.ts';

/** What the methods need. */
export interface LiveUpdateRpcDeps {
  readonly cpus: CpuUpdaterDeps;
  readonly memory: MemoryUpdaterDeps;
  readonly hostDevices: HostDevicePlug;
  readonly log: Logger;
}

/** Methods that change a running VM besides its sync. `@source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/cmd-server/server.go` */
export function liveUpdateHandlers({ cpus, memory, hostDevices, log }: LiveUpdateRpcDeps) {
  return {
    syncVirtualMachineCPUs: vmiRpc<cmdV1.VMIRequest>(
      log,
      { success: 'VMI vCPUs has been updated', failure: 'Failed update VMI vCPUs' },
      (vmi, vmiLog, { options }) =>
        updateCpus(cpus, vmi, options === undefined ? undefined : completeOptions(vmi, options), vmiLog),
    ),
    syncVirtualMachineMemory: vmiRpc<cmdV1.VMIRequest>(
      log,
      { success: 'guest memory has been updated', failure: 'Failed update VMI guest memory' },
      (vmi, vmiLog) => updateMemory(memory, vmi, vmiLog),
    ),
    hotplugHostDevices: vmiRpc<cmdV1.VMIRequest>(log, { failure: 'Failed to hot-plug host-devices' }, (vmi, vmiLog) => {
      hostDevices.start(vmi, vmiLog);
      return Promise.resolve();
    }),
  } satisfies CmdHandlers;
}
