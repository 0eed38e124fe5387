import type { Logger } from '@virtwire/telemetry';
import type { Clock } from '../config/clock.ts';
import { textOf } from '../errors.ts';
import type { MetadataCache } from '../metadata/cache.ts';

/** How long the handler has to act on the mark before the launcher does. */
const HANDLER_LIMIT_MS = 10_000;

/** What ending the VM on a signal needs. */
export interface NodeShutdownDeps {
  readonly clock: Clock;
  readonly log: Logger;
  readonly metadata: MetadataCache;
  /** Asks the guest to power off. */
  readonly shutdown: () => Promise<void>;
}

/**
 * Marks the domain for a graceful shutdown, which the handler learns from the next event and answers with a shutdown
 * request. FM-9.5: if none comes within 10 s, the launcher asks the guest itself.
 *
 * @param endedSignal aborted when QEMU is gone.
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/manager.go MarkGracefulShutdownVMI
 */
export async function shutDownGracefully(deps: NodeShutdownDeps, endedSignal: AbortSignal): Promise<void> {
  const { metadata, log } = deps;
  metadata.gracePeriod.update((grace) => ({ ...grace, MarkedForGracefulShutdown: true }));
  log.info('Signaled graceful shutdown');
  await deps.clock.sleep(HANDLER_LIMIT_MS, endedSignal);
  if (endedSignal.aborted || metadata.gracePeriod.load()?.DeletionTimestamp !== undefined) return;
  log.warn('virt-handler did not react to the graceful shutdown, powering the guest down');
  await deps.shutdown().catch((caught: unknown) => log.error(`Unable to power the guest down: ${textOf(caught)}`));
}
