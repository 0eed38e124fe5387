import type { CmdRpc } from '../cmd/rpcs.ts';

/** What a handler does when a launcher is too old for an RPC. */
export type RpcFallback =
  /** Goes on as if the answer were this text. */
  | { readonly kind: 'value'; readonly value: string }
  /** Logs once per launcher and goes on; what depends on the answer stays as it is. */
  | { readonly kind: 'goOn' }
  /** Tells the user in a condition or event and goes on. */
  | { readonly kind: 'report' }
  /** Answers the REST caller with a status. */
  | { readonly kind: 'rest'; readonly status: number }
  /** Asks another RPC. */
  | { readonly kind: 'rpc'; readonly rpc: CmdRpc };

/** An RPC that not every launcher of v0.59 to v1.9 has. */
export interface RpcRule {
  readonly rpc: CmdRpc;
  /** First release of launchers that serve it. */
  readonly since: string;
  readonly fallback: RpcFallback;
  /** What a user notices with an older launcher. */
  readonly effect: string;
}

/**
 * RPCs by age. All others are served by every launcher from v0.59 on.
 *
 * @source KubeVirt v1.9.0 pkg/virt-handler (what it does with Unimplemented), made better where it says so in `effect`
 */
export const RPC_RULES: readonly RpcRule[] = [
  {
    rpc: 'GetQemuVersion',
    since: 'v1.0.0',
    fallback: { kind: 'value', value: 'qemu-unknown' },
    effect: 'downward metrics name the hypervisor qemu-unknown',
  },
  {
    rpc: 'SyncVirtualMachineCPUs',
    since: 'v1.0.0',
    fallback: { kind: 'report' },
    effect: 'the number of CPUs does not change until the VM is restarted; a warning event says so',
  },
  {
    rpc: 'SyncVirtualMachineMemory',
    since: 'v1.1.0',
    fallback: { kind: 'report' },
    effect: 'the memory does not grow: condition HotMemoryChange False, reason Memory Hotplug Failed',
  },
  {
    rpc: 'GetSEVInfo',
    since: 'v1.1.0',
    fallback: { kind: 'rest', status: 500 },
    effect: 'virtctl cannot fetch the SEV platform information',
  },
  {
    rpc: 'GetLaunchMeasurement',
    since: 'v1.1.0',
    fallback: { kind: 'rest', status: 500 },
    effect: 'virtctl cannot query the SEV launch measurement',
  },
  {
    rpc: 'InjectLaunchSecret',
    since: 'v1.1.0',
    fallback: { kind: 'rest', status: 500 },
    effect: 'virtctl cannot inject a SEV launch secret',
  },
  {
    rpc: 'ResetVirtualMachine',
    since: 'v1.5.0',
    fallback: { kind: 'rest', status: 500 },
    effect: 'virtctl reset fails until the VM has been migrated or restarted',
  },
  {
    rpc: 'GetDomainDirtyRateStats',
    since: 'v1.6.0',
    fallback: { kind: 'goOn' },
    effect: 'the metric of the dirty rate is missing for this VM; logged once',
  },
  {
    rpc: 'GetScreenshot',
    since: 'v1.7.0',
    fallback: { kind: 'rest', status: 500 },
    effect: 'virtctl vnc screenshot fails until the VM has been migrated or restarted',
  },
  {
    rpc: 'BackupVirtualMachine',
    since: 'v1.8.0',
    fallback: { kind: 'rest', status: 400 },
    effect: 'a backup fails with event BackupError',
  },
  {
    rpc: 'RedefineCheckpoint',
    since: 'v1.8.0',
    fallback: { kind: 'rest', status: 503 },
    effect: 'the caller tries again until the launcher is new',
  },
  {
    rpc: 'GetVMStats',
    since: 'v1.9.0',
    fallback: { kind: 'rpc', rpc: 'GetDomainStats' },
    effect: 'statistics of the domain only, none of the guest agent',
  },
];
