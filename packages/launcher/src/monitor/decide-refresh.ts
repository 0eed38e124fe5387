/** What a look at QEMU found. Times in milliseconds. */
export interface RefreshFacts {
  readonly domainName: string;
  readonly nowMs: number;
  readonly startedAtMs: number;
  /** How long QEMU may take to appear; 0 is no limit. */
  readonly startTimeoutMs: number;
  /** When the graceful shutdown was signalled; undefined while it was not. */
  readonly shutdownAtMs: number | undefined;
  readonly gracePeriodSeconds: number;
  readonly isExitingEarly: boolean;
  /** The domain is deleted, whether or not the handler was told. */
  readonly isDomainGone: boolean;
  /** QEMU's pid as far as known; undefined while its pid file cannot be read. */
  readonly pid: number | undefined;
  /** State letter of the process; undefined when there is no such process. */
  readonly processState: string | undefined;
}

/** What to do after a look; `why` is the sentence for the log. */
export type RefreshStep =
  | { readonly kind: 'wait' }
  | { readonly kind: 'killAndWait' }
  | { readonly kind: 'done'; readonly why: string; readonly isZombie?: true };

function isExpired({ nowMs, shutdownAtMs, gracePeriodSeconds }: RefreshFacts): boolean {
  return shutdownAtMs !== undefined && Math.floor((nowMs - shutdownAtMs) / 1_000) > gracePeriodSeconds;
}

function decideWithoutPid(facts: RefreshFacts): RefreshStep {
  const { domainName, nowMs, startedAtMs, startTimeoutMs, shutdownAtMs } = facts;
  const done = (why: string): RefreshStep => ({ kind: 'done', why: `${domainName} ${why}` });
  // QEMU came and went between two looks: nobody would ever see its pid.
  if (facts.isDomainGone) return done('is deleted, its process was never seen');
  if (startTimeoutMs > 0 && nowMs - startedAtMs >= startTimeoutMs) return done('not found after timeout');
  if (isExpired(facts)) return done('not found after grace period expired');
  if (shutdownAtMs !== undefined) return done('not found after shutdown initiated');
  return { kind: 'wait' };
}

/**
 * Whether QEMU is still to be waited for. A zombie counts as gone (FM-9.2).
 *
 * @source KubeVirt v1.9.0 pkg/virt-launcher/monitor.go:130
 */
export function decideRefresh(facts: RefreshFacts): RefreshStep {
  const { domainName, pid } = facts;
  if (facts.isExitingEarly) {
    return { kind: 'done', why: `received early exit signal - stop waiting for ${domainName}` };
  }
  if (pid === undefined) return decideWithoutPid(facts);
  const process = `Process ${domainName} and pid ${pid}`;
  if (facts.processState === undefined) return { kind: 'done', why: `${process} is gone!` };
  if (facts.processState === 'Z') {
    return { kind: 'done', why: `${process} is a zombie, sending SIGCHLD to pid 1 to reap process`, isZombie: true };
  }
  return { kind: isExpired(facts) ? 'killAndWait' : 'wait' };
}
