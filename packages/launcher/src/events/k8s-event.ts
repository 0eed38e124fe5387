import { kubernetesEvent } from '@virtwire/vm-model/payloads';

/** Reference to the launcher's VMI, as Kubernetes events and log lines carry it. */
export interface VmiReference {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}

/** A Kubernetes event that the handler shall record on the VMI. */
export interface K8sEvent {
  readonly type: 'Warning' | 'Normal';
  readonly reason: string;
  readonly message: string;
}

/**
 * A core/v1 Event as JSON, with the fields that travel from launcher to handler.
 *
 * @source KubeVirt v1.9.0 pkg/virt-launcher/notify-client/client.go SendK8sEvent
 */
export function renderK8sEvent(vmi: VmiReference, { type, reason, message }: K8sEvent): string {
  const zero = kubernetesEvent.zero();
  return kubernetesEvent.render({
    ...zero,
    involvedObject: {
      ...zero.involvedObject,
      kind: 'VirtualMachineInstance',
      namespace: vmi.namespace,
      name: vmi.name,
      uid: vmi.uid,
      apiVersion: 'kubevirt.io/v1',
    },
    reason,
    message,
    type,
  });
}
