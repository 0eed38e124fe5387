import type { Logger } from '@virtwire/telemetry';
import type { Clock } from '../config/clock.ts';
import { TOO_LATE, within } from '../config/within.ts';
import { textOf } from '../errors.ts';

const WAIT_MS = 15_000;
const WAIT_AFTER_KILL_MS = 30_000;

/** What the last wait needs. */
export interface FinalNotificationDeps {
  readonly clock: Clock;
  readonly log: Logger;
  /** Resolves when the handler was told that the domain is deleted. */
  readonly isDeleteSent: Promise<unknown>;
  readonly kill: () => Promise<void>;
}

/**
 * Gives the handler time to learn that the domain is gone, then exits whatever comes of it (FM-2.11).
 *
 * @source KubeVirt v1.9.0 cmd/virt-launcher/virt-launcher.go:310
 */
export async function waitForFinalNotification(deps: FinalNotificationDeps): Promise<void> {
  const { clock, log } = deps;
  log.info('Waiting on final notifications to be sent to virt-handler.');
  if ((await within(clock, WAIT_MS, deps.isDeleteSent)) !== TOO_LATE) {
    log.info('Final Delete notification sent');
    return;
  }
  log.info('Timed out waiting for final delete notification. Attempting to kill domain');
  await deps.kill().catch((caught: unknown) => log.error(`Unable to kill the domain: ${textOf(caught)}`));
  if ((await within(clock, WAIT_AFTER_KILL_MS, deps.isDeleteSent)) !== TOO_LATE) {
    log.info('Final Delete notification sent after calling kill.');
    return;
  }
  log.info('Timed out waiting for final delete notification after calling kill.');
}
