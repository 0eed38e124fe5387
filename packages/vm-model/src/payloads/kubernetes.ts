import { anyObject, int32, omitEmpty, text, time } from './field-types.ts';
import { type ObjectOf, payload, struct } from './struct.ts';

const some = omitEmpty(text);

const eventFields = {
  metadata: anyObject,
  involvedObject: struct('ObjectReference', {
    kind: some,
    namespace: some,
    name: some,
    uid: some,
    apiVersion: some,
    resourceVersion: some,
    fieldPath: some,
  }),
  reason: some,
  message: some,
  source: struct('EventSource', { component: some, host: some }),
  firstTimestamp: time,
  lastTimestamp: time,
  count: omitEmpty(int32),
  type: some,
  eventTime: time,
  action: some,
  reportingComponent: text,
  reportingInstance: text,
};
const statusFields = {
  kind: some,
  apiVersion: some,
  metadata: anyObject,
  status: some,
  message: some,
  reason: some,
  code: omitEmpty(int32),
};

/** A Kubernetes event, as launchers send it. */
export type KubernetesEvent = ObjectOf<typeof eventFields>;
/** A Kubernetes status, as ERROR events of launchers before v1.9 carry it. */
export type KubernetesStatus = ObjectOf<typeof statusFields>;

/** `eventJSON` of HandleK8sEvent; only involvedObject, type, reason and message are read. */
export const kubernetesEvent = payload(struct('Event', eventFields));
/** `statusJSON` of HandleDomainEvent. */
export const kubernetesStatus = payload(struct('Status', statusFields));
