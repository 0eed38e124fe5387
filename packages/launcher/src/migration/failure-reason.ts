const CANCELLED = 'canceled by client';
const TOO_SMALL = 'has to be smaller or equal to the actual size of the containing file';

/**
 * What users read of a migration that failed.
 *
 * @param isAborted libvirt took an abort, after which it may fail with other words.
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/live-migration-source.go setMigrationResultHelper
 */
export function decideFailureReason(text: string, isAborted: boolean): string {
  if (isAborted || text.includes(CANCELLED)) return 'Live migration has been aborted';
  if (text.split(/\s+/).join(' ').includes(TOO_SMALL)) {
    const what =
      'Volume migration cannot be performed because the destination volume is smaller than the source volume';
    return `${what}: ${text}`;
  }
  return text;
}
