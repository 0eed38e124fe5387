import type { DeepPartial, DomainEventRequest, K8sEventRequest } from '../gen/kubevirt/notify/v1/notify.ts';
import { printDocuments, readDocuments } from './convert.ts';
import { NOTIFY_DOCUMENTS } from './table.ts';
import type { DomainEvent, K8sEvent } from './types.ts';

/**
 * Reads the domain and the status of a domain event; undefined for the one that is not there.
 *
 * @throws {VmModelError} `InvalidJson`, with Go's words.
 */
export function readDomainEvent(request: DomainEventRequest): DomainEvent {
  return readDocuments(request, NOTIFY_DOCUMENTS.DomainEventRequest) as DomainEvent;
}

/**
 * Reads the event of a Kubernetes event.
 *
 * @throws {VmModelError} `InvalidJson`, with Go's words.
 */
export function readK8sEvent(request: K8sEventRequest): K8sEvent {
  return readDocuments(request, NOTIFY_DOCUMENTS.K8sEventRequest) as K8sEvent;
}

/** A domain event to send. */
export function domainEvent(event: Partial<DomainEvent>): DeepPartial<DomainEventRequest> {
  return printDocuments(event, NOTIFY_DOCUMENTS.DomainEventRequest);
}

/** A Kubernetes event to send. */
export function k8sEvent(event: Partial<K8sEvent>): DeepPartial<K8sEventRequest> {
  return printDocuments(event, NOTIFY_DOCUMENTS.K8sEventRequest);
}
