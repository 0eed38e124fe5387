import type { NotifyHandlers, PeerIdentity } from '@virtwire/shared-proto';
import { readDomainEvent, readK8sEvent } from '@virtwire/shared-proto/documents';
import type { DomainEvent, K8sEvent } from '@virtwire/shared-proto/documents';
import type { Logger } from '@virtwire/telemetry';
import type { DomainStore } from '../domain-watch/domain-store.ts';
import { domainKey } from '../domain-watch/domain-store.ts';
import { errorText } from '../errors.ts';
import type { EventRecorder } from '../events/recorder.ts';
import { objectKey, phaseOf, vmiRef } from '../model.ts';
import type { Domain, Vmi } from '../model.ts';

/** What the notify service needs. */
export interface EventHandlersDeps {
  readonly store: DomainStore;
  readonly getVmi: (key: string) => Vmi | undefined;
  readonly events: EventRecorder;
  readonly log: Logger;
  /** Told of the text of each domain that a launcher with a known identity sends. */
  readonly onDomainJson?: (uid: string, json: string) => void;
}

const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString('utf8');
const refuse = (message: string): { success: false; message: string } => ({ success: false, message });

/** Why an object is not the pipe's own; undefined when it is, or when the connection came without an identity. */
function foreign(identity: PeerIdentity | undefined, key: string, uid: string): string | undefined {
  if (identity === undefined) return undefined;
  const isSame = objectKey(identity) === key && (uid === '' || uid === identity.uid);
  return isSame ? undefined : `this pipe belongs to ${objectKey(identity)} (${identity.uid}), not to ${key} (${uid})`;
}

function domainUidOf(domain: Domain): string {
  return domain.Spec.Metadata.KubeVirt.UID ?? domain.ObjectMeta.uid ?? '';
}

/**
 * True for an event that was on its way for so long that time has passed it by: libvirt calls a domain off for no reason
 * only before its first start, so one that is known to be active cannot become that. Launchers written in Go deliver
 * such an event when their handler was replaced during a start; believing it would end a VM that runs. The new handler
 * may not have heard the launcher yet, and knows of the start by the VMI alone.
 */
function isOutdated(domain: Domain, known: Domain | undefined, vmi: Vmi | undefined): boolean {
  const isNeverStarted = domain.Status.Status === 'Shutoff' && domain.Status.Reason === 'Unknown';
  if (!isNeverStarted || domain.ObjectMeta.deletionTimestamp) return false;
  const uid = domainUidOf(domain);
  const status = known?.Status.Status;
  if (known === undefined || status === 'Unknown') {
    return vmi?.metadata.uid === uid && phaseOf(vmi) === 'Running';
  }
  return (status === 'Running' || status === 'Paused') && domainUidOf(known) === uid;
}

/**
 * The handler's side of the notify service.
 *
 * Bad JSON is answered with `success` false, never with a gRPC error (FM-1.4). An ERROR event stays with its VM
 * (FM-2.3); unknown types are ignored with success, as in the model.
 *
 * @source KubeVirt v1.9.0 pkg/virt-handler/notify-server/server.go
 */
export function createEventHandlers({ store, getVmi, events, log, onDomainJson }: EventHandlersDeps): NotifyHandlers {
  return {
    handleDomainEvent(request, { identity }) {
      let event: DomainEvent;
      try {
        event = readDomainEvent(request);
      } catch (error) {
        return refuse(errorText(error));
      }
      const { domainJSON: domain, statusJSON: status } = event;
      log.debug(`Received Domain Event of type ${request.eventType}`);
      if (request.eventType === 'ERROR') {
        const of = identity === undefined ? {} : { name: identity.name, namespace: identity.namespace };
        log.error(of, `Domain error event with message: ${status?.message ?? ''}`);
        return;
      }
      if (domain === undefined) return;
      const key = domainKey(domain);
      const stranger = foreign(identity, key, domainUidOf(domain));
      if (stranger !== undefined) {
        log.warn({ reason: stranger }, 'refused a domain event');
        return refuse(stranger);
      }
      // Events from before the metadata was written have no UID; whose they are is known by the pipe.
      const metadata = domain.Spec.Metadata.KubeVirt;
      if (identity !== undefined && (metadata.UID ?? '') === '') metadata.UID = identity.uid;
      if (isOutdated(domain, store.get(key), getVmi(key))) {
        log.info(`ignoring an outdated event: ${key} is known to be active`);
        return;
      }
      if (identity !== undefined) onDomainJson?.(identity.uid, text(request.domainJSON));
      if (request.eventType === 'ADDED' || request.eventType === 'MODIFIED') store.upsert(domain);
      else if (request.eventType === 'DELETED') store.delete(key);
      return;
    },
    handleK8sEvent(request, { identity }) {
      let event: K8sEvent['eventJSON'];
      try {
        event = readK8sEvent(request).eventJSON;
      } catch (error) {
        return refuse(`Error unmarshalling k8s event: ${errorText(error)}`);
      }
      const { namespace = '', name = '', uid = '' } = event?.involvedObject ?? {};
      const key = objectKey({ namespace, name });
      const stranger = foreign(identity, key, uid);
      if (stranger !== undefined) {
        log.warn({ reason: stranger }, 'refused an event');
        return refuse(stranger);
      }
      const vmi = getVmi(key);
      if (vmi?.metadata.uid !== uid) return refuse('VMI not found');
      const type = event?.type === 'Warning' ? 'Warning' : 'Normal';
      events.event(vmiRef(vmi), type, event?.reason ?? '', event?.message ?? '');
      return;
    },
  };
}
