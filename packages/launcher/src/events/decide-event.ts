import { GONE_STATUS, lifeCycleOf, reasonOf, renderTime } from '@virtwire/vm-model';
import type { Domain, DomainSpec, DomainStatus } from '@virtwire/vm-model';
import { DOMAIN_STATE, PAUSED_REASON } from '../domain/state.ts';
import type { DomainStateReason } from '../domain/libvirt-port.ts';
import type { DomainEvent } from './domain-event.ts';
import { JOB_OPERATION, LIFECYCLE, LIFECYCLE_DETAIL } from './domain-event.ts';

/** What libvirt answered about a domain when an event was handled. */
export interface ObservedDomain {
  /** Undefined when libvirt says that there is no such domain. */
  readonly state: DomainStateReason | undefined;
  /** Undefined when the XML could not be read because the domain is gone or moving. */
  readonly spec: DomainSpec | undefined;
}

/** Type of a message to the handler: Kubernetes' words for what happened to an object. */
export type NotifyEventType = 'ADDED' | 'MODIFIED';

/** The words for a domain's state. */
export function describeState(state: DomainStateReason | undefined): Pick<DomainStatus, 'Status' | 'Reason'> {
  if (state === undefined) return GONE_STATUS;
  const status = lifeCycleOf(state.state);
  return { Status: status, Reason: reasonOf(status, state.reason) };
}

/**
 * The Domain document after libvirt was asked: state, spec if it could be read, and the mark of deletion.
 *
 * A domain that libvirt does not know is marked as deleted whatever the event was: handlers of all releases are told so
 * and build on it, though FM-2.9 would have it for the event of its removal only. One that moved to another node is not,
 * as FM-2.9 says.
 *
 * @source KubeVirt v1.9.0 pkg/virt-launcher/notify-client/client.go:215
 */
export function applyObserved(
  base: Domain,
  observed: ObservedDomain,
  event: DomainEvent | undefined,
  uid: string | undefined,
  nowMs: number,
): Domain {
  const isMoved =
    event?.lifecycle?.event === LIFECYCLE.stopped && event.lifecycle.detail === LIFECYCLE_DETAIL.stoppedMigrated;
  const isGone = observed.state === undefined && !isMoved;
  return {
    ...base,
    ObjectMeta: {
      ...base.ObjectMeta,
      ...(observed.spec === undefined ? {} : { uid }),
      ...(isGone ? { deletionTimestamp: renderTime(nowMs) } : {}),
    },
    Spec: observed.spec ?? base.Spec,
    Status: { ...base.Status, ...describeState(observed.state) },
  };
}

/** True for the event that tells of a backup's end. */
export function endsBackup(
  event: DomainEvent | undefined,
): event is DomainEvent & { readonly job: NonNullable<DomainEvent['job']> } {
  return event?.job !== undefined && Number(event.job.get('operation')) === JOB_OPERATION.backup;
}

/** Type of the message about an event. `@source KubeVirt v1.9.0 pkg/virt-launcher/notify-client/client.go:330` */
export function decideEventType(event: DomainEvent | undefined): NotifyEventType {
  const { lifecycle, job } = event ?? {};
  if (job !== undefined) return endsBackup(event) ? 'ADDED' : 'MODIFIED';
  if (lifecycle?.event === LIFECYCLE.defined && lifecycle.detail === LIFECYCLE_DETAIL.definedAdded) return 'ADDED';
  if (lifecycle?.event === LIFECYCLE.started && lifecycle.detail === LIFECYCLE_DETAIL.startedMigrated) return 'ADDED';
  return 'MODIFIED';
}

/** True for an event after which an incoming migration may have ended. */
export function startsTargetMonitor(event: DomainEvent | undefined): boolean {
  const { event: id, detail } = event?.lifecycle ?? {};
  return (
    (id === LIFECYCLE.resumed && detail === LIFECYCLE_DETAIL.resumedMigrated) ||
    (id === LIFECYCLE.suspended && detail === LIFECYCLE_DETAIL.suspendedPaused)
  );
}

/** True while the VM is paused because a disk failed. */
export function isPausedForIoError(state: DomainStateReason | undefined): boolean {
  return state?.state === DOMAIN_STATE.paused && state.reason === PAUSED_REASON.ioError;
}
