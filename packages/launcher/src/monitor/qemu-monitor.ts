import type { Logger } from '@virtwire/telemetry';
import { renderDuration } from '@virtwire/vm-model';
import type { Clock } from '../config/clock.ts';
import { decideRefresh } from './decide-refresh.ts';
import type { Nudge } from './nudge.ts';

const RATE_MS = 1_000;

/** What watching QEMU needs. */
export interface QemuMonitorDeps {
  readonly clock: Clock;
  readonly log: Logger;
  readonly readPid: () => number | undefined;
  readonly readProcessState: (pid: number) => string | undefined;
  /** Says that the pod is to end: once, when the signal came. */
  readonly onShutdownSignal: () => void;
  /** Ends the VM by force; may be called again every second. */
  readonly kill: (pid: number | undefined) => Promise<void>;
  readonly isExitingEarly: () => boolean;
  /** Whether the domain is known to be deleted: by libvirt's events, or because the handler was told so. */
  readonly isDomainGone: () => boolean;
  /** QEMU has ended and nobody has collected it: reminds process 1. */
  readonly onZombie: () => void;
  /** Cuts the wait short when libvirt says that something happened. */
  readonly nudge: Nudge;
}

/** Limits of the watch. */
export interface QemuMonitorConfig {
  readonly domainName: string;
  readonly startTimeoutMs: number;
  readonly gracePeriodSeconds: number;
}

/**
 * Waits until QEMU is gone.
 *
 * @param stopSignal aborted when the pod is told to end; from then on the VM has its grace period.
 * @source KubeVirt v1.9.0 pkg/virt-launcher/monitor.go:200
 */
export async function monitorQemu(
  deps: QemuMonitorDeps,
  config: QemuMonitorConfig,
  stopSignal: AbortSignal,
): Promise<void> {
  const { clock, log } = deps;
  const { domainName, startTimeoutMs } = config;
  const limit = startTimeoutMs === 0 ? 'disabled' : renderDuration(startTimeoutMs);
  log.info(`Monitoring loop: rate 1s start timeout ${limit}`);
  const startedAtMs = clock.now();
  let pid: number | undefined;
  let shutdownAtMs: number | undefined;
  let isMissingTold = false;

  function findPid(): void {
    if (pid !== undefined) return;
    pid = deps.readPid();
    if (pid !== undefined) log.info(`Found PID for ${domainName}: ${pid}`);
    else if (!isMissingTold) log.info(`Still missing PID for ${domainName}, no pid file yet`);
    isMissingTold = true;
  }

  stopSignal.addEventListener('abort', () => deps.nudge.nudge(), { once: true });
  for (;;) {
    if (stopSignal.aborted && shutdownAtMs === undefined) {
      shutdownAtMs = clock.now();
      deps.onShutdownSignal();
    }
    findPid();
    const step = decideRefresh({
      domainName,
      nowMs: clock.now(),
      startedAtMs,
      startTimeoutMs,
      shutdownAtMs,
      gracePeriodSeconds: config.gracePeriodSeconds,
      isExitingEarly: deps.isExitingEarly(),
      isDomainGone: deps.isDomainGone(),
      pid,
      processState: pid === undefined ? undefined : deps.readProcessState(pid),
    });
    if (step.kind === 'done') {
      log.info(step.why);
      if (step.isZombie === true) deps.onZombie();
      return;
    }
    if (step.kind === 'killAndWait') {
      log.info('Grace Period expired, shutting down.');
      await deps.kill(pid);
    }
    await deps.nudge.wait(RATE_MS);
  }
}
