import type { Logger } from '@virtwire/telemetry';
import type { Clock } from '../config/clock.ts';
import type { DomainRef, LibvirtPort } from '../domain/libvirt-port.ts';
import { UNBOUNDED_JOB } from './job.ts';
import type { AbortStatus, MigrationRecord } from './record.ts';
import { TOO_LATE, within } from '../config/within.ts';

const ABORT_LIMIT_MS = 30_000;

/** What an abort needs. */
export interface AbortDeps {
  readonly libvirt: Pick<LibvirtPort, 'getJobInfo' | 'abortJob'>;
  readonly record: MigrationRecord;
  readonly clock: Clock;
}

async function abortJob({ libvirt }: AbortDeps, domain: DomainRef, log: Logger): Promise<AbortStatus> {
  try {
    const { type } = await libvirt.getJobInfo(domain);
    if (type !== UNBOUNDED_JOB) {
      log.info(`migration job is not active (type=${String(type)}), nothing to abort`);
      return 'Failed';
    }
    await libvirt.abortJob(domain);
    log.info('Live migration abort succeeded');
    return 'Succeeded';
  } catch (caught) {
    log.error({ reason: caught }, 'failed to cancel migration');
    return 'Failed';
  }
}

/**
 * Asks libvirt to give up a migration. How it went is noted in the record, and it may be asked again after a failure.
 *
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/live-migration-source.go cancelMigration
 */
export async function abortMigration(deps: AbortDeps, domain: DomainRef, log: Logger): Promise<AbortStatus> {
  deps.record.setAbort('Aborting');
  const outcome = await within(deps.clock, ABORT_LIMIT_MS, abortJob(deps, domain, log));
  if (outcome === TOO_LATE) log.error('timed out waiting for the migration to be cancelled');
  const status = outcome === TOO_LATE ? 'Failed' : outcome;
  deps.record.setAbort(status);
  return status;
}
