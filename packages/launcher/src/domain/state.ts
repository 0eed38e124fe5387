/** libvirt's numbers of domain states. */
export const DOMAIN_STATE = {
  noState: 0,
  running: 1,
  blocked: 2,
  paused: 3,
  shutdown: 4,
  shutoff: 5,
  crashed: 6,
  pmSuspended: 7,
} as const;

/** libvirt's numbers of the reasons why a domain is paused. */
export const PAUSED_REASON = {
  user: 1,
  migration: 2,
  save: 3,
  dump: 4,
  ioError: 5,
  fromSnapshot: 7,
  shuttingDown: 8,
  snapshot: 9,
  startingUp: 11,
  postcopy: 12,
} as const;

const DOWN: ReadonlySet<number> = new Set([
  DOMAIN_STATE.noState,
  DOMAIN_STATE.shutdown,
  DOMAIN_STATE.shutoff,
  DOMAIN_STATE.crashed,
]);

/** True when no guest runs and none is about to go on: NOSTATE, SHUTDOWN, SHUTOFF, CRASHED. */
export function isDown(state: number): boolean {
  return DOWN.has(state);
}

const HEALTHY_PAUSES: ReadonlySet<number> = new Set([
  PAUSED_REASON.user,
  PAUSED_REASON.migration,
  PAUSED_REASON.save,
  PAUSED_REASON.dump,
  PAUSED_REASON.fromSnapshot,
  PAUSED_REASON.shuttingDown,
  PAUSED_REASON.snapshot,
  PAUSED_REASON.startingUp,
  PAUSED_REASON.postcopy,
]);

/** True for a pause that somebody asked for, during which the agent cannot answer and the VM is nevertheless healthy. */
export function isHealthyPause(state: number, reason: number): boolean {
  return state === DOMAIN_STATE.paused && HEALTHY_PAUSES.has(reason);
}
