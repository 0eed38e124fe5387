import type { Int64 } from '../int64.ts';

/** Time as the API writes it: RFC 3339 in UTC, whole seconds. */
export type Timestamp = string;

/** `metadata` of a Kubernetes object. */
export interface ObjectMeta {
  name: string;
  namespace: string;
  uid: string;
  generateName?: string;
  selfLink?: string;
  resourceVersion?: string;
  generation?: Int64;
  creationTimestamp?: Timestamp | null;
  deletionTimestamp?: Timestamp | null;
  deletionGracePeriodSeconds?: Int64;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
  ownerReferences?: OwnerReference[];
  finalizers?: string[];
  managedFields?: unknown[];
}

/** One entry of `metadata.ownerReferences`. */
export interface OwnerReference {
  apiVersion: string;
  kind: string;
  name: string;
  uid: string;
  controller?: boolean;
  blockOwnerDeletion?: boolean;
}

/** Condition of a VMI; unset times are `null` in JSON. */
export interface Condition {
  type: string;
  status: ConditionStatus;
  lastProbeTime?: Timestamp | null;
  lastTransitionTime?: Timestamp | null;
  reason?: string;
  message?: string;
}

/** Value of a condition. */
export type ConditionStatus = 'True' | 'False' | 'Unknown';

/** Amount in Kubernetes notation: `1Gi`, `500m`; JSON numbers are accepted too. */
export type Quantity = string | number;

/** Names an object in the same namespace. */
export interface LocalObjectReference {
  name?: string;
}

/** `resources` of a VMI, keyed by resource name. */
export interface ResourceRequirements {
  requests?: Record<string, Quantity>;
  limits?: Record<string, Quantity>;
  overcommitGuestOverhead?: boolean;
}
