import type { Logger } from '@virtwire/telemetry';
import { renderDuration } from '@virtwire/vm-model';
import type { Clock } from '../config/clock.ts';
import { within } from '../config/within.ts';
import { LauncherError, textOf } from '../errors.ts';
import type { DomainRef } from '../domain/libvirt-port.ts';
import type { Nudge } from './nudge.ts';

const LOOK_EVERY_MS = 10_000;
const EARLY_EXIT_EVERY_MS = 2_000;
/** A libvirt that does not answer within this time has no domain yet; the other ends must not wait for it. */
const LOOK_LIMIT_MS = 2_000;

/** What waiting for a domain needs. */
export interface WaitForDomainDeps {
  readonly clock: Clock;
  readonly log: Logger;
  readonly listDomains: () => Promise<readonly DomainRef[]>;
  /** Whether libvirt's events told of the domain; it may be gone again before it was looked for. */
  readonly wasSeen: () => boolean;
  readonly isExitingEarly: () => boolean;
  /** Number of syncs so far and how the last one failed. */
  readonly journal: () => { readonly calls: number; readonly lastError: string | undefined };
  /** Nudged when libvirt told of a first domain. */
  readonly nudge: Nudge;
}

function describeNothing(timeoutMs: number, journal: ReturnType<WaitForDomainDeps['journal']>): string {
  const { calls, lastError } = journal;
  const waited = `timed out waiting for domain to be defined (waited ${renderDuration(timeoutMs)}`;
  if (calls === 0) return `${waited}; no SyncVirtualMachine arrived: the handler never handed the VM over)`;
  const last = lastError === undefined ? 'the last one succeeded' : `the last one failed: ${lastError}`;
  return `${waited}; SyncVirtualMachine arrived ${calls} times, ${last})`;
}

/**
 * Waits until libvirt has a domain, or has had one.
 *
 * @param timeoutMs 0 is no limit.
 * @param stopSignal aborted when the pod is told to end.
 * @returns false when the pod is told to end before a domain came; one that has come just then is not left alone.
 * @throws {LauncherError} `DomainTimeout` with what was missing (FM-9.4), or `EarlyExit` (FM-8.3)
 * @source KubeVirt v1.9.0 cmd/virt-launcher/virt-launcher.go:283
 */
export async function waitForDomain(
  deps: WaitForDomainDeps,
  timeoutMs: number,
  stopSignal: AbortSignal,
): Promise<boolean> {
  const { clock } = deps;
  const giveUpAtMs = timeoutMs === 0 ? Infinity : clock.now() + timeoutMs;
  let lookAtMs = clock.now();
  stopSignal.addEventListener('abort', () => deps.nudge.nudge(), { once: true });
  for (;;) {
    if (stopSignal.aborted) return await hasDomain(deps);
    if (deps.isExitingEarly()) throw new LauncherError('EarlyExit', 'received early exit signal');
    if (deps.wasSeen()) return true;
    if (clock.now() >= lookAtMs) {
      if (await hasDomain(deps)) return true;
      lookAtMs = clock.now() + LOOK_EVERY_MS;
    }
    const nowMs = clock.now();
    if (nowMs >= giveUpAtMs) throw new LauncherError('DomainTimeout', describeNothing(timeoutMs, deps.journal()));
    const pauseMs = Math.min(EARLY_EXIT_EVERY_MS, lookAtMs - nowMs, giveUpAtMs - nowMs);
    if (await deps.nudge.wait(pauseMs)) lookAtMs = clock.now();
  }
}

async function hasDomain(deps: WaitForDomainDeps): Promise<boolean> {
  return (await within(deps.clock, LOOK_LIMIT_MS, look(deps))) === true;
}

async function look(deps: WaitForDomainDeps): Promise<boolean> {
  try {
    return (await deps.listDomains()).some((domain) => domain.uuid !== '');
  } catch (caught) {
    deps.log.error(`failed to retrieve domain: ${textOf(caught)}`);
    return false;
  }
}
