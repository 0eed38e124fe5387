import type { CmdClient } from '@virtwire/shared-proto';
import { adaptOptions, needsDisksInfo } from '@virtwire/shared-proto/compat-rules';
import type { Launchers } from '../launchers/launchers.ts';
import { hasContainerDisks, readDisksInfo } from '../prepare/container-disk/disks-info.ts';
import type { Isolation } from '../prepare/parts.ts';
import type { Pass } from './pass.ts';
import type { SyncOptions } from './steps.ts';

/** A launcher without a domain answers at once; one with a domain measures for a second. */
const AGE_PROBE_LIMIT_MS = 3_000;

/**
 * Adds to the options of a sync what the VMI's launcher needs for its age: images of container disks for launchers
 * before v1.6, the switch of online growth for those before v1.9.
 *
 * A launcher that may need its images described is asked for the dirty rate, which changes nothing and came with v1.6:
 * whether it knows the RPC is in the launcher's era afterwards.
 */
export async function adaptToLauncher(
  { launchers }: { readonly launchers: Pick<Launchers, 'eraOf'> },
  pass: Pass,
  client: CmdClient,
  options: SyncOptions,
  isolationOf: (pass: Pass) => Promise<Isolation>,
): Promise<SyncOptions> {
  const { uid } = pass.vmi.metadata;
  if (!hasContainerDisks(pass.vmi)) return adaptOptions(options, launchers.eraOf(uid));
  const isUnknown = launchers.eraOf(uid).until === undefined && needsDisksInfo(launchers.eraOf(uid));
  if (isUnknown) await client.getDomainDirtyRateStats({}, { timeoutMs: AGE_PROBE_LIMIT_MS });
  const era = launchers.eraOf(uid);
  if (!needsDisksInfo(era)) return adaptOptions(options, era);
  return adaptOptions(options, era, readDisksInfo(pass.vmi, await isolationOf(pass)));
}
