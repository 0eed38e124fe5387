import { randomUUID } from 'node:crypto';
import { applyVmiDefaults, clusterDefaults, renderTime, withCondition } from '@virtwire/vm-model';
import type { Condition, Vmi, VmiPhase } from '@virtwire/vm-model';

const FINALIZER = 'kubevirt.io/foregroundDeleteVirtualMachine';
const NODE_LABEL = 'kubevirt.io/nodeName';
const VERSION = 'v1';

/** A copy of the VMI in another phase, with the time it got there. */
function withPhase(vmi: Vmi, phase: VmiPhase, now: Date): Vmi {
  const copy = structuredClone(vmi);
  const status = (copy.status ??= {});
  if (status.phase === phase) return copy;
  status.phase = phase;
  status.phaseTransitionTimestamps = [
    ...(status.phaseTransitionTimestamps ?? []),
    { phase, phaseTransitionTimestamp: renderTime(now.getTime()) },
  ];
  return copy;
}

/**
 * A manifest's VMI as it would lie in a cluster after admission: defaults, finalizer, phase Pending.
 *
 * @source KubeVirt v1.9.0 pkg/virt-api/webhooks/mutating-webhook/mutators/vmi-mutator.go
 */
export function admitVmi(manifest: Vmi, now: Date, architecture: string): Vmi {
  const uid = manifest.metadata.uid || randomUUID();
  const vmi = applyVmiDefaults(manifest, clusterDefaults(architecture), randomUUID());
  vmi.metadata = {
    ...vmi.metadata,
    uid,
    generation: 1,
    creationTimestamp: renderTime(now.getTime()),
    annotations: {
      ...vmi.metadata.annotations,
      'kubevirt.io/latest-observed-api-version': VERSION,
      'kubevirt.io/storage-observed-api-version': VERSION,
    },
    finalizers: [...new Set([...(vmi.metadata.finalizers ?? []), FINALIZER])],
  };
  return withPhase(vmi, 'Pending', now);
}

/** The VMI once its pod exists. */
export function scheduling(vmi: Vmi, podUid: string, now: Date): Vmi {
  const copy = withPhase(vmi, 'Scheduling', now);
  copy.status = { ...copy.status, activePods: { [podUid]: '' }, conditions: readyCondition(copy, false, now) };
  return copy;
}

const NOT_READY = { reason: 'GuestNotRunning', message: 'Guest VM is not reported as running' };

function readyCondition(vmi: Vmi, isReady: boolean, now: Date): Condition[] {
  const ready: Condition = {
    type: 'Ready',
    status: isReady ? 'True' : 'False',
    lastProbeTime: null,
    lastTransitionTime: renderTime(now.getTime()),
    ...(isReady ? {} : NOT_READY),
  };
  return [...withCondition(vmi.status?.conditions, ready)];
}

/** The VMI with its pod's readiness; a paused VM is not ready. */
export function withReady(vmi: Vmi, isReady: boolean, now: Date): Vmi {
  return { ...vmi, status: { ...vmi.status, conditions: readyCondition(vmi, isReady, now) } };
}

/**
 * The VMI as virt-controller writes it when its pod is ready: from here on it is the handler's.
 *
 * @source KubeVirt v1.9.0 pkg/virt-controller/watch/vmi/lifecycle.go
 */
export function handOver(
  vmi: Vmi,
  pod: { readonly podUid: string; readonly node: string; readonly image: string },
  now: Date,
): Vmi {
  const copy = withPhase(vmi, 'Scheduled', now);
  copy.metadata.labels = { ...copy.metadata.labels, [NODE_LABEL]: pod.node };
  const volumes = [...(copy.spec.volumes ?? [])].sort((a, b) => (a.name < b.name ? -1 : 1));
  const primary = copy.spec.networks?.find((network) => network.pod !== undefined);
  copy.status = {
    ...copy.status,
    nodeName: pod.node,
    activePods: { [pod.podUid]: pod.node },
    volumeStatus: volumes.map(({ name }) => ({ name, target: '' })),
    ...(primary === undefined ? {} : { interfaces: [{ name: primary.name, podInterfaceName: 'eth0' }] }),
    migrationTransport: 'Unix',
    launcherContainerImageVersion: pod.image,
    conditions: readyCondition(copy, false, now),
    qosClass: 'Burstable',
  };
  return copy;
}

/** The VMI as somebody who deletes it leaves it; by force: the guest gets no time to shut down. */
export function deleting(vmi: Vmi, now: Date, options: { readonly force: boolean }): Vmi {
  const copy = structuredClone(vmi);
  copy.metadata.deletionTimestamp ??= renderTime(now.getTime());
  if (options.force) copy.spec.terminationGracePeriodSeconds = 0;
  return copy;
}

/** The VMI failed, for a reason that people read. */
export function failed(vmi: Vmi, reason: string, now: Date): Vmi {
  const copy = withPhase(vmi, 'Failed', now);
  copy.status = { ...copy.status, reason };
  return copy;
}
