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
 * A core/v1 Event with the fields that travel from launcher to handler, in the key order of Go.
 *
 * @source KubeVirt v1.9.0 pkg/virt-launcher/notify-client/client.go SendK8sEvent
 */
export function k8sEventObject(vmi: VmiReference, event: K8sEvent): Record<string, unknown> {
  return {
    metadata: {},
    involvedObject: {
      kind: 'VirtualMachineInstance',
      namespace: vmi.namespace,
      name: vmi.name,
      uid: vmi.uid,
      apiVersion: 'kubevirt.io/v1',
    },
    reason: event.reason,
    ...(event.message === '' ? {} : { message: event.message }),
    source: {},
    firstTimestamp: null,
    lastTimestamp: null,
    type: event.type,
    eventTime: null,
    reportingComponent: '',
    reportingInstance: '',
  };
}
