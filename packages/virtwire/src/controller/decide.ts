import type { VmiPhase } from '@virtwire/vm-model';

/** What the controller knows of one VM when it decides. */
export interface Observed {
  readonly phase: VmiPhase;
  /** Someone asked for the VM to end. */
  readonly isDeleting: boolean;
  readonly sandbox: 'none' | 'running' | 'ended';
  /** The launcher answers its probe, or has had its time to. */
  readonly isLauncherReady: boolean;
  /** Milliseconds since the sandbox ended; 0 while it runs. */
  readonly endedForMs: number;
  /** Milliseconds since the deletion was asked for; 0 when it was not. */
  readonly deletingForMs: number;
  /** Milliseconds since the VMI became final; 0 before. */
  readonly finalForMs: number;
  /** The handler still holds its record of the VMI: its clean-up is not done. */
  readonly handlerHolds: boolean;
  /** The launcher was told to end. */
  readonly isTerminated: boolean;
  /** The launcher was killed. */
  readonly isKilled: boolean;
  readonly graceMs: number;
  /** What the condition Ready says, and what it should say. */
  readonly isReady: boolean;
  readonly shouldBeReady: boolean;
}

/** One thing the controller does, as a kubelet and virt-controller would. */
export type Step =
  | { readonly kind: 'createSandbox' }
  | { readonly kind: 'handOver' }
  | { readonly kind: 'terminateSandbox' }
  | { readonly kind: 'killSandbox'; readonly because: string }
  | { readonly kind: 'fail'; readonly reason: string; readonly message: string }
  | { readonly kind: 'removeSandbox' }
  | { readonly kind: 'removeVmi' }
  | { readonly kind: 'setReady'; readonly ready: boolean }
  | { readonly kind: 'wait'; readonly reason: string; readonly requeueAfterMs: number };

/** The handler sees a dead launcher in under a second; past this the controller says so itself. */
const HANDLER_PATIENCE_MS = 5_000;
/** A kubelet's SIGKILL comes this long after the guest's grace period. `@source KubeVirt v1.9.0 pkg/virt-controller/services/template.go` */
const KILL_PADDING_MS = 30_000;
/** How long a launcher may take to end by itself once its VM is final. */
const EXIT_PATIENCE_MS = 15_000;
const CLEANUP_PATIENCE_MS = 10_000;
const LOOK_AGAIN_MS = 250;
/** The socket's directory is watched, and the probe tells its end; this is for what was missed. */
const LAUNCHER_LOOK_MS = 1_000;

const STOPPED_UNSTARTED: Step = { kind: 'fail', reason: 'Deleted', message: 'stopped before it was started' };
const ENDED_UNSTARTED: Step = {
  kind: 'fail',
  reason: 'LauncherEnded',
  message: 'the launcher ended before the VM was started',
};

const wait = (reason: string, requeueAfterMs = LOOK_AGAIN_MS): Step => ({ kind: 'wait', reason, requeueAfterMs });

function decideBeforeHandOver(o: Observed): Step {
  // Without a guest there is nothing to wait for, and a launcher that is just starting hears no SIGTERM yet.
  if (o.isDeleting && o.sandbox === 'running' && !o.isKilled) {
    return { kind: 'killSandbox', because: 'it has no guest yet' };
  }
  if (o.isDeleting) return STOPPED_UNSTARTED;
  if (o.sandbox === 'none') return { kind: 'createSandbox' };
  if (o.sandbox === 'running') {
    // Kubernetes hands over as soon as the container runs; a node of its own can wait for the launcher itself.
    return o.isLauncherReady ? { kind: 'handOver' } : wait('the launcher starts', LAUNCHER_LOOK_MS);
  }
  return ENDED_UNSTARTED;
}

function decideHandedOver(o: Observed): Step {
  if (o.sandbox !== 'running') {
    if (o.endedForMs < HANDLER_PATIENCE_MS) return wait('the handler settles the end of the launcher');
    if (o.phase === 'Running')
      return { kind: 'fail', reason: 'LauncherEnded', message: 'the launcher ended while the VM was running' };
    return o.isDeleting ? STOPPED_UNSTARTED : ENDED_UNSTARTED;
  }
  if (o.isReady !== o.shouldBeReady) return { kind: 'setReady', ready: o.shouldBeReady };
  if (!o.isDeleting) return wait('the handler runs the VM', Number.POSITIVE_INFINITY);
  if (!o.isTerminated) return { kind: 'terminateSandbox' };
  if (o.isKilled) return wait('the launcher ends');
  const left = o.graceMs + KILL_PADDING_MS - o.deletingForMs;
  return left <= 0 ? { kind: 'killSandbox', because: 'its grace period is over' } : wait('the guest shuts down', left);
}

function decideFinal(o: Observed): Step {
  if (o.sandbox === 'running' && o.finalForMs < EXIT_PATIENCE_MS) {
    return o.isTerminated ? wait('the launcher ends') : { kind: 'terminateSandbox' };
  }
  if (o.handlerHolds && o.finalForMs < CLEANUP_PATIENCE_MS) return wait('the handler cleans up');
  if (o.sandbox !== 'none') return { kind: 'removeSandbox' };
  return o.isDeleting ? { kind: 'removeVmi' } : wait('kept until it is removed', Number.POSITIVE_INFINITY);
}

/**
 * The next step for one VM of a node without Kubernetes.
 *
 * @source KubeVirt v1.9.0 pkg/virt-controller/watch/vmi/lifecycle.go
 */
export function decideVm(o: Observed): Step {
  switch (o.phase) {
    case '':
    case 'Pending':
    case 'Scheduling':
    case 'WaitingForSync':
      return decideBeforeHandOver(o);
    case 'Succeeded':
    case 'Failed':
      return decideFinal(o);
    default:
      return decideHandedOver(o);
  }
}
