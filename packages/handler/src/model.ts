import type { Vmi, VmiPhase } from '@virtwire/vm-model';

export type {
  Condition,
  Domain,
  DomainInterface,
  Network,
  PersistentVolumeClaimInfo,
  Vmi,
  VmiInterface,
  VmiInterfaceStatus,
  VmiPhase,
  VmiStatus,
  Volume,
  VolumeStatus,
} from '@virtwire/vm-model';

/** Names one object: for events, logs and cleanup of a VMI that is gone. */
export interface ObjectRef {
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}

/** Key of an object in stores and queues. */
export function objectKey(meta: { readonly namespace: string; readonly name: string }): string {
  return `${meta.namespace}/${meta.name}`;
}

/** Reference to a VMI for events and logs. */
export function vmiRef(vmi: Vmi): ObjectRef {
  const { namespace, name, uid } = vmi.metadata;
  return { kind: 'VirtualMachineInstance', namespace, name, uid };
}

/** Phase of a VMI; empty when it has no status yet. */
export function phaseOf(vmi: Vmi): VmiPhase {
  return vmi.status?.phase ?? '';
}

/** True when the VMI has ended for good. */
export function isFinal(vmi: Vmi): boolean {
  const phase = phaseOf(vmi);
  return phase === 'Succeeded' || phase === 'Failed';
}

/** True when the VMI runs without root rights in its pod. */
export function isNonRoot(vmi: Vmi): boolean {
  return Number(vmi.status?.runtimeUser ?? 0) !== 0 || vmi.metadata.annotations?.['kubevirt.io/nonroot'] !== undefined;
}

/** API time of a clock reading: whole seconds, UTC. */
export function apiTime(ms: number): string {
  return `${new Date(Math.floor(ms / 1000) * 1000).toISOString().slice(0, 19)}Z`;
}
