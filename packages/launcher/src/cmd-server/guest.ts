import type { CmdHandlers, cmdV1 } from '@virtwire/shared-proto';
import { domainName } from '@virtwire/vm-model';
import type { Logger } from '@virtwire/telemetry';
import type { GuestExecDeps } from '../agent/exec.ts';
import { execInGuest } from '../agent/exec.ts';
import type { GuestPingDeps } from '../agent/ping.ts';
import { pingGuest } from '../agent/ping.ts';
import type { Freezer } from '../domain/freeze.ts';
import type { LaunchSecurity } from '../domain/launch-security.ts';
import type { LibvirtPort } from '../domain/libvirt-port.ts';
import type { MemoryDumper } from '../domain/memory-dump.ts';
import type { RebootDeps } from '../domain/reboot.ts';
import { resetVm, softRebootVm } from '../domain/reboot.ts';
import { vmiRpc } from './vmi-rpc.ts';
import { wireError } from './wire-error.ts';

/** What the methods need. */
export interface GuestRpcDeps {
  readonly libvirt: Pick<LibvirtPort, 'lookupDomainByName' | 'screenshot'>;
  readonly reboot: RebootDeps;
  readonly freezer: Freezer;
  readonly memoryDumper: MemoryDumper;
  readonly launchSecurity: LaunchSecurity;
  readonly exec: GuestExecDeps;
  readonly ping: GuestPingDeps;
  readonly log: Logger;
}

/** Methods that reach into a running guest. `@source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/cmd-server/server.go` */
export function guestHandlers(deps: GuestRpcDeps) {
  return { ...rebootHandlers(deps), ...freezeHandlers(deps), ...pictureHandlers(deps), ...agentHandlers(deps) };
}

function rebootHandlers({ log, reboot }: GuestRpcDeps) {
  return {
    resetVirtualMachine: vmiRpc<cmdV1.VMIRequest>(
      log,
      { success: 'Reset vmi', failure: 'Failed to reset vmi' },
      (vmi) => resetVm(reboot, vmi),
    ),
    softRebootVirtualMachine: vmiRpc<cmdV1.VMIRequest>(
      log,
      { success: 'Soft rebooted vmi', failure: 'Failed to soft reboot vmi' },
      (vmi, vmiLog) => softRebootVm(reboot, vmi, vmiLog),
    ),
  } satisfies CmdHandlers;
}

function freezeHandlers({ log, freezer }: GuestRpcDeps) {
  return {
    freezeVirtualMachine: vmiRpc<cmdV1.FreezeRequest>(
      log,
      { success: 'Freezed vmi', failure: 'Failed to freeze vmi' },
      (vmi, vmiLog, { unfreezeTimeoutSeconds }) => freezer.freeze(vmi, unfreezeTimeoutSeconds, vmiLog),
    ),
    unfreezeVirtualMachine: vmiRpc<cmdV1.VMIRequest>(
      log,
      { success: 'Unfreezed vmi', failure: 'Failed to unfreeze vmi' },
      (vmi, vmiLog) => freezer.thaw(vmi, vmiLog),
    ),
  } satisfies CmdHandlers;
}

function pictureHandlers({ log, libvirt, memoryDumper, launchSecurity }: GuestRpcDeps) {
  return {
    getScreenshot: vmiRpc<cmdV1.VMIRequest, { mime: string; data: Uint8Array }>(
      log,
      { failure: 'Failed to screenshot' },
      async ({ metadata }) =>
        libvirt.screenshot(await libvirt.lookupDomainByName(domainName(metadata.namespace, metadata.name))),
    ),
    virtualMachineMemoryDump: vmiRpc<cmdV1.MemoryDumpRequest>(
      log,
      { failure: 'Failed to Dump vmi memory' },
      (vmi, vmiLog, { dumpPath }) => Promise.resolve(memoryDumper.start(vmi, dumpPath, vmiLog)),
    ),
    async getSEVInfo() {
      try {
        return { sevInfo: Buffer.from(await launchSecurity.platformInfo()) };
      } catch (caught) {
        log.error({ reason: caught }, 'Failed to get SEV platform info');
        throw wireError(caught);
      }
    },
    getLaunchMeasurement: vmiRpc<cmdV1.VMIRequest, { launchMeasurement: Uint8Array }>(
      log,
      { failure: 'Failed to get launch measuement' },
      async (vmi) => ({ launchMeasurement: Buffer.from(await launchSecurity.measurement(vmi)) }),
    ),
    injectLaunchSecret: vmiRpc<cmdV1.InjectLaunchSecretRequest>(
      log,
      { failure: 'Failed to inject SEV launch secret' },
      (vmi, _log, { options }) => launchSecurity.injectSecret(vmi, Buffer.from(options).toString('utf8')),
    ),
  } satisfies CmdHandlers;
}

function agentHandlers({ exec, ping }: GuestRpcDeps) {
  return {
    guestPing: ({ domainName: name }: cmdV1.GuestPingRequest) => pingGuest(ping, name),
    async exec({ domainName: name, Command: path, Args: args, timeoutSeconds }: cmdV1.ExecRequest) {
      const { exitCode, output } = await execInGuest(exec, name, { path, args, timeoutSeconds });
      return { exitCode, stdOut: output };
    },
  } satisfies CmdHandlers;
}
