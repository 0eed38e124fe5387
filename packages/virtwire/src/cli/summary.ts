import { isConditionTrue } from '@virtwire/vm-model';
import type { Vmi } from '@virtwire/vm-model';
import type { SandboxRecord } from '../state/sandbox-records.ts';

/** One VM as `ps` lists it. */
export interface VmSummary {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly phase: string;
  readonly paused: boolean;
  readonly agentConnected: boolean;
  readonly reason: string | undefined;
  /** Address of the guest as the handler reports it. */
  readonly ip: string | undefined;
  /** Address of the pod. */
  readonly podIp: string | undefined;
  readonly launcherPid: number | undefined;
  readonly createdAt: string | undefined;
  readonly isStopping: boolean;
}

/** What people want to know of a VM at a glance. */
export function summarise(vmi: Vmi, record: SandboxRecord | undefined): VmSummary {
  const { metadata, status } = vmi;
  return {
    namespace: metadata.namespace,
    name: metadata.name,
    uid: metadata.uid,
    phase: status?.phase ?? 'Pending',
    paused: isConditionTrue(status?.conditions, 'Paused'),
    agentConnected: isConditionTrue(status?.conditions, 'AgentConnected'),
    reason: status?.reason,
    ip: status?.interfaces?.find((nic) => nic.ipAddress !== undefined && nic.ipAddress !== '')?.ipAddress,
    podIp: record?.podIp,
    launcherPid: record?.pid,
    createdAt: metadata.creationTimestamp ?? undefined,
    isStopping: typeof metadata.deletionTimestamp === 'string',
  };
}

/** The phase with what modifies it. */
export function renderState(vm: VmSummary): string {
  const extra = [vm.paused ? 'paused' : '', vm.isStopping ? 'stopping' : ''].filter((word) => word !== '');
  return extra.length === 0 ? vm.phase : `${vm.phase} (${extra.join(', ')})`;
}
