import type { RulePlace } from './content-rules.ts';

/** A field or key that came with a release and is sent to every peer: older ones skip it. */
export interface Addition {
  readonly place: RulePlace;
  readonly from: 'handler' | 'launcher';
  readonly since: string;
  /** What a user notices with an older peer, and what its newer partner does about it. */
  readonly effect: string;
}

const option = (field: string, since: string, effect: string): Addition => ({
  place: { kind: 'field', message: 'VirtualMachineOptions', field },
  from: 'handler',
  since,
  effect,
});
const cluster = (field: string, since: string, effect: string): Addition => ({
  ...option(field, since, effect),
  place: { kind: 'field', message: 'ClusterConfig', field },
});
const json = (from: Addition['from'], document: string, key: string, since: string, effect: string): Addition => ({
  place: { kind: 'json', document, key },
  from,
  since,
  effect,
});

/**
 * What came after v0.59, in the order of the schema.
 *
 * @source wire rules 10.4 and 10.5, eras of migrationOptionsKeys
 */
export const ADDITIONS: readonly Addition[] = [
  option('clusterConfig', 'v1.0.0', 'switches of the cluster have no effect on older launchers'),
  option('interfaceDomainAttachment', 'v1.1.1', 'older launchers attach bridge and masquerade by tap, and no plugins'),
  option('interfaceMigration', 'v1.2.0', 'links are not refreshed after a migration to an older launcher'),
  option('pluginsJson', 'v1.9.0', 'older launchers run no domain hooks of plugins'),
  option('GraceHostDeviceAliases', 'v1.9.0', 'Grace devices of older launchers get no alias'),
  cluster('FreePageReportingDisabled', 'v1.0.0', 'free page reporting stays as the older launcher has it'),
  cluster('BochsDisplayForEFIGuests', 'v1.1.0', 'EFI guests of older launchers keep a VGA display'),
  cluster('SerialConsoleLogDisabled', 'v1.1.0', 'older launchers log no serial console at all'),
  cluster('PCINUMAAwareTopologyEnabled', 'v1.8.0', 'devices are not placed by NUMA node'),
  cluster('VGPULiveMigrationEnabled', 'v1.9.0', 'VMs with a vGPU do not migrate'),
  cluster('GraceIOVirtualizationEnabled', 'v1.9.0', 'Grace IO virtualisation is off'),
  json('handler', 'MigrationOptions', 'ParallelMigrationThreads', 'v1.0.0', 'one stream per migration'),
  json('handler', 'MigrationOptions', 'AllowWorkloadDisruption', 'v1.5.0', 'AllowPostCopy alone decides on a stall'),
  json('handler', 'MigrationOptions', 'MaxDowntimeMs', 'v1.9.0', 'the downtime stays as libvirt has it'),
  json('handler', 'MigrationOptions', 'StallDetectorOptions', 'v1.9.0', 'the older way of noticing a stall is used'),
  json('handler', 'MigrationOptions', 'Compression', 'v1.9.0', 'migrations are not compressed'),
  json(
    'launcher',
    'Domain',
    'Spec.Metadata.KubeVirt.Migration.EndTimestamp of a target',
    'v1.6.0',
    'an older target never tells of its end: an active domain and the end at the source count as well',
  ),
  json('launcher', 'Domain', 'Spec.Metadata.KubeVirt.Backup', 'v1.8.0', 'older launchers have no backups'),
  json('launcher', 'Domain', 'Status.GuestPanicInfo', 'v1.9.0', 'a guest that panicked is not told apart'),
  json('launcher', 'DomainStats', 'DirtyRate', 'v1.6.0', 'the metric is missing'),
  json('launcher', 'Filesystem', 'disk', 'v1.2.0', 'file systems are not matched to volumes'),
];
