import type { ObjectRef } from '../model.ts';

/** Severity of a Kubernetes event. */
export type EventType = 'Normal' | 'Warning';

/** Takes events about VMIs and the node; never throws and never blocks. */
export interface EventRecorder {
  event(object: ObjectRef, type: EventType, reason: string, message: string): void;
}
