import type { DomainEvent } from './domain-event.ts';
import { LIFECYCLE } from './domain-event.ts';

/** What libvirt's events have told of a domain so far, also while the handler has not been told of them. */
export interface DomainSightings {
  /** Takes an event of the domain as it arrives. */
  note(event: DomainEvent): void;
  /** Whether libvirt ever told of the domain. */
  hasCome(): boolean;
  /** Whether the domain came and is gone: neither defined nor active. */
  isGone(): boolean;
}

const COMES_UP: ReadonlySet<number> = new Set([LIFECYCLE.started, LIFECYCLE.suspended, LIFECYCLE.resumed]);

/** Creates the sightings of a domain that was not seen yet. */
export function createDomainSightings(): DomainSightings {
  let hasCome = false;
  let isDefined = false;
  let isActive = false;
  return {
    note({ lifecycle }) {
      if (lifecycle === undefined) return;
      hasCome = true;
      const { event } = lifecycle;
      if (event === LIFECYCLE.defined) isDefined = true;
      else if (event === LIFECYCLE.undefined) isDefined = false;
      else if (event === LIFECYCLE.stopped) isActive = false;
      else if (COMES_UP.has(event)) isActive = true;
    },
    hasCome: () => hasCome,
    isGone: () => hasCome && !isDefined && !isActive,
  };
}
