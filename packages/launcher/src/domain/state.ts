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

const STATUS: Readonly<Record<number, string>> = {
  0: 'NoState',
  1: 'Running',
  2: 'Blocked',
  3: 'Paused',
  4: 'ShuttingDown',
  5: 'Shutoff',
  6: 'Crashed',
  7: 'PMSuspended',
};

const PAUSED_REASONS = [
  ...['Unknown', 'User', 'Migration', 'Save', 'Dump', 'IOError', 'Watchdog', 'FromSnapshot', 'ShuttingDown'],
  ...['Snapshot', 'Crashed', 'StartingUp', 'Postcopy', 'PostcopyFailed'],
];

const REASON: Readonly<Record<number, readonly string[]>> = {
  [DOMAIN_STATE.paused]: PAUSED_REASONS,
  [DOMAIN_STATE.shutdown]: ['Unknown', 'User'],
  [DOMAIN_STATE.shutoff]: [
    ...['Unknown', 'Shutdown', 'Destroyed', 'Crashed', 'Migrated', 'Saved', 'Failed', 'FromSnapshot'],
  ],
  [DOMAIN_STATE.crashed]: ['Unknown', 'Panicked'],
};

/**
 * KubeVirt's word for a libvirt state; empty for a number it has no word for.
 *
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/util/libvirt_helper.go:52
 */
export function statusOfState(state: number): string {
  return STATUS[state] ?? '';
}

/**
 * KubeVirt's word for why a domain is in its state: `Unknown` where the state has no reasons of its own, empty for a
 * reason newer than the table.
 *
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/util/libvirt_helper.go:66
 */
export function reasonOfState(state: number, reason: number): string {
  const reasons = REASON[state];
  return reasons === undefined ? 'Unknown' : (reasons[reason] ?? '');
}

/** True when no guest runs and none is about to go on: NOSTATE, SHUTDOWN, SHUTOFF, CRASHED. */
export function isDown(state: number): boolean {
  return (
    state === DOMAIN_STATE.noState ||
    state === DOMAIN_STATE.shutdown ||
    state === DOMAIN_STATE.shutoff ||
    state === DOMAIN_STATE.crashed
  );
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
