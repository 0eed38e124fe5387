import { DOMAIN_STATE, isDown, PAUSED_REASON } from './state.ts';

/** What decides about the domain of a VMI that is to be kept up to date. */
export interface SyncFacts {
  /** libvirt's state of the domain, and why it is so. */
  readonly state: number;
  readonly reason: number;
  /** `status.phase` of the VMI as the handler sent it. */
  readonly phase: string | undefined;
  /** Somebody asked for the pause, so that it is not the sync's to end. */
  readonly isPausedByRequest: boolean;
  /** The guest's memory is being dumped. */
  readonly isDumping: boolean;
}

const STARTED_PHASES: ReadonlySet<string> = new Set(['Running', 'Succeeded', 'Failed']);

/** libvirt holds the guest still for a dump and sets it going afterwards; a request to do so would wait, and fail. */
function isHeldForDump({ reason, isDumping }: SyncFacts): boolean {
  return isDumping && reason === PAUSED_REASON.dump;
}

/**
 * What to do with a defined domain: start it once, go on with it, or let it be. A domain that is down after it ran is
 * not started again; that is the handler's to judge.
 *
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/manager.go:1425
 */
export function decideSync(facts: SyncFacts): 'start' | 'resume' | 'none' {
  const { state, phase, isPausedByRequest } = facts;
  if (isDown(state) && !STARTED_PHASES.has(phase ?? '')) return 'start';
  if (state === DOMAIN_STATE.paused && !isPausedByRequest && !isHeldForDump(facts)) return 'resume';
  return 'none';
}

/** How a domain is created. */
export interface StartMode {
  readonly flags: number;
  /** The pause is the user's wish and no later sync may end it. */
  readonly rememberPause: boolean;
}

const START_PAUSED = 1;

/**
 * Whether to start the guest paused: on the user's wish, or because its emulator thread has to be moved first.
 *
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/manager.go:1590
 */
export function decideStartMode(vmi: {
  readonly spec: {
    readonly startStrategy?: string;
    readonly domain: {
      readonly cpu?: { readonly dedicatedCpuPlacement?: boolean; readonly isolateEmulatorThread?: boolean };
    };
  };
}): StartMode {
  const { startStrategy, domain } = vmi.spec;
  if (startStrategy === 'Paused') return { flags: START_PAUSED, rememberPause: true };
  const isIsolated = domain.cpu?.dedicatedCpuPlacement === true && domain.cpu.isolateEmulatorThread === true;
  return { flags: isIsolated ? START_PAUSED : 0, rememberPause: false };
}
