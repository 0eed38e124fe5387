import type { DomainStatus } from '../gen/domain-types.gen.ts';

/** State of a domain as KubeVirt spells it. */
export type LifeCycle = NonNullable<DomainStatus['Status']>;
/** Why a domain is in its state, as KubeVirt spells it. */
export type StateChangeReason = NonNullable<DomainStatus['Reason']>;

/** The text of each libvirt domain state, by its number. */
const STATES: readonly LifeCycle[] = [
  'NoState',
  'Running',
  'Blocked',
  'Paused',
  'ShuttingDown',
  'Shutoff',
  'Crashed',
  'PMSuspended',
];

/** The text of each libvirt reason, by its number; only these states have reasons of their own. */
const REASONS: Readonly<Partial<Record<LifeCycle, readonly StateChangeReason[]>>> = {
  ShuttingDown: ['Unknown', 'User'],
  Shutoff: ['Unknown', 'Shutdown', 'Destroyed', 'Crashed', 'Migrated', 'Saved', 'Failed', 'FromSnapshot'],
  Crashed: ['Unknown', 'Panicked'],
  Paused: [
    'Unknown',
    'User',
    'Migration',
    'Save',
    'Dump',
    'IOError',
    'Watchdog',
    'FromSnapshot',
    'ShuttingDown',
    'Snapshot',
    'Crashed',
    'StartingUp',
    'Postcopy',
    'PostcopyFailed',
  ],
};

/**
 * State of a libvirt domain as KubeVirt spells it; empty for a number that it does not know.
 *
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/util/libvirt_helper.go:52
 */
export function lifeCycleOf(libvirtState: number): LifeCycle {
  return STATES[libvirtState] ?? '';
}

/**
 * Reason of a libvirt domain's state as KubeVirt spells it; empty for a number that it does not know.
 *
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/util/libvirt_helper.go:106
 */
export function reasonOf(status: LifeCycle, libvirtReason: number): StateChangeReason {
  const reasons = REASONS[status];
  return reasons === undefined ? 'Unknown' : (reasons[libvirtReason] ?? '');
}

/** Status of a domain that libvirt does not know any more. */
export const GONE_STATUS: Readonly<Pick<DomainStatus, 'Status' | 'Reason'>> = {
  Status: 'NoState',
  Reason: 'NonExistent',
};

const DOWN: ReadonlySet<LifeCycle> = new Set(['NoState', 'ShuttingDown', 'Shutoff', 'Crashed']);

/** Whether a domain has no running guest; paused, blocked and suspended domains have one. */
export function isDomainDown(status: LifeCycle): boolean {
  return DOWN.has(status);
}
