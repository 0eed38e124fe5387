import type { Vmi } from '@virtwire/vm-model';
import type { MigrateParams } from './libvirt-port.ts';
import type { MigrationSettings } from './settings.ts';
import { streamSocket } from './sockets.ts';
import { targetDomainName } from './target-xml.ts';

/** The first release of libvirt that is told where zeroes need not be sent: 10.9. */
const DETECTS_ZEROES_SINCE = 10_009_000n;

/** What the parameters are made from. */
export interface MigrationParamsInput {
  readonly vmi: Vmi;
  /** The domain for the target. */
  readonly xml: string;
  /** Targets of the disks to copy. */
  readonly disks: readonly string[];
  readonly settings: MigrationSettings;
  readonly shareDir: string;
  /** libvirt's number of its release; undefined for the newest. */
  readonly libvirtVersion: bigint | undefined;
}

function diskParams({ vmi, disks, shareDir, libvirtVersion }: MigrationParamsInput): MigrateParams {
  if (disks.length === 0) return {};
  const detectsZeroes = libvirtVersion === undefined || libvirtVersion >= DETECTS_ZEROES_SINCE;
  return {
    disks_uri: `unix://${streamSocket(shareDir, vmi.metadata.uid, 'disks')}`,
    migrate_disks: disks,
    ...(detectsZeroes ? { migrate_disks_detect_zeroes: disks } : {}),
  };
}

/**
 * Parameters of libvirt's migrate call.
 *
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/live-migration-source.go generateMigrationParams
 */
export function migrationParams(input: MigrationParamsInput): MigrateParams {
  const { vmi, xml, settings, shareDir } = input;
  const { bandwidthMiBps, parallelConnections, compression } = settings;
  return {
    destination_name: targetDomainName(vmi),
    destination_xml: xml,
    persistent_xml: xml,
    migrate_uri: `unix://${streamSocket(shareDir, vmi.metadata.uid, 'memory')}`,
    ...diskParams(input),
    ...(bandwidthMiBps > 0n ? { bandwidth: bandwidthMiBps } : {}),
    ...(parallelConnections === undefined ? {} : { 'parallel.connections': parallelConnections }),
    ...(compression === undefined ? {} : { compression }),
  };
}
