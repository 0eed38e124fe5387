export { withDocuments } from './client.ts';
export { domainEvent, k8sEvent, readDomainEvent, readK8sEvent } from './notify.ts';
export type {
  DocumentCalls,
  DocumentClient,
  DocumentRequest,
  DocumentResponse,
  DomainEvent,
  K8sEvent,
  ReadMessage,
  WrittenMessage,
} from './types.ts';
