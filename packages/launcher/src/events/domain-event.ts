import type { Params } from '../domain/libvirt-port.ts';

/** libvirt's numbers of lifecycle events. */
export const LIFECYCLE = {
  defined: 0,
  undefined: 1,
  started: 2,
  suspended: 3,
  resumed: 4,
  stopped: 5,
  shutdown: 6,
  pmSuspended: 7,
  crashed: 8,
} as const;

/** libvirt's details of lifecycle events that decide something here. */
export const LIFECYCLE_DETAIL = {
  definedAdded: 0,
  startedMigrated: 1,
  suspendedPaused: 0,
  resumedMigrated: 1,
  stoppedMigrated: 3,
  crashedPanicked: 0,
} as const;

/** libvirt's numbers of agent states. */
export const AGENT_STATE = { connected: 1, disconnected: 2 } as const;

/** libvirt's numbers of job operations that decide something here. */
export const JOB_OPERATION = { migrationOut: 5, backup: 9 } as const;

/** Something that libvirt told about a domain, in the one field beside its name. */
export interface DomainEvent {
  readonly domainName: string;
  readonly lifecycle?: { readonly event: number; readonly detail: number };
  readonly device?: 'added' | 'removed' | 'memoryResized';
  readonly agent?: { readonly state: number; readonly reason: number };
  /** Parameters of a completed job: `operation`, `success`, numbers and times. */
  readonly job?: Params;
}

const LIFECYCLE_TEXT = [
  ...['defined', 'undefined', 'started', 'suspended', 'resumed', 'stopped', 'shutdown', 'pmsuspended', 'crashed'],
];
const DETAIL_TEXT: readonly (readonly string[])[] = [
  ['added', 'updated', 'renamed', 'from snapshot'],
  ['removed', 'renamed'],
  ['booted', 'migrated', 'restored', 'from snapshot', 'wakeup', 'recreated'],
  [
    ...['paused', 'migrated', 'IO error', 'watchdog', 'restored', 'from snapshot', 'api error', 'postcopy'],
    ...['postcopy failed', 'guest shutdown'],
  ],
  ['unpaused', 'migrated', 'from snapshot', 'postcopy', 'postcopy failed'],
  ['shutdown', 'destroyed', 'crashed', 'migrated', 'saved', 'failed', 'from snapshot', 'recreated'],
  ['finished', 'guest', 'host'],
  ['memory', 'disk'],
  ['panicked', 'crashloaded'],
];

/** A lifecycle event in words, as `Domain event="resumed" detail="unpaused"`. */
export function renderLifecycle(event: number, detail: number): string {
  const word = LIFECYCLE_TEXT[event] ?? 'unknown';
  return `Domain event="${word}" detail="${DETAIL_TEXT[event]?.[detail] ?? 'unknown'}"`;
}
