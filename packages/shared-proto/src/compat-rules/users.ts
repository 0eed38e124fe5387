import { ADDITIONS } from './additions.ts';
import { CONTENT_RULES, type RulePlace } from './content-rules.ts';
import { RPC_RULES } from './rpc-rules.ts';

/**
 * Who follows a rule: code of virtwire, as `package/file below its src` with a name that stands in it, or a part that
 * comes later.
 */
export type RuleUser =
  | {
      readonly file: string;
      readonly name: string;
      /** A part to come that has to follow it too. */ readonly also?: string;
    }
  | { readonly later: string };

const REST = { later: "the handler's REST server" } as const;
const METRICS = { later: "the handler's metrics" } as const;
const MIGRATION_TARGET = { later: 'the migration target of the handler' } as const;
const MIGRATION_SOURCE = { later: 'the migration source of the handler' } as const;
const code = (file: string, name: string): RuleUser => ({ file, name });
/** Launchers need it in SyncMigrationTarget as in the first sync. */
const adaptation = (name: string): RuleUser => ({
  ...{ file: 'handler/vmi/adapt-to-launcher.ts', name, also: MIGRATION_TARGET.later },
});
const syncOption = (name: string): RuleUser => code('handler/vmi/sync-options.ts', name);

const OF_RPCS: Readonly<Record<string, RuleUser>> = {
  GetQemuVersion: { later: "the handler's downward metrics" },
  SyncVirtualMachineCPUs: MIGRATION_TARGET,
  SyncVirtualMachineMemory: MIGRATION_TARGET,
  GetSEVInfo: REST,
  GetLaunchMeasurement: REST,
  InjectLaunchSecret: REST,
  ResetVirtualMachine: REST,
  GetDomainDirtyRateStats: METRICS,
  GetScreenshot: REST,
  BackupVirtualMachine: REST,
  RedefineCheckpoint: REST,
  GetVMStats: REST,
};

const OF_CONTENTS: Readonly<Record<keyof typeof CONTENT_RULES, RuleUser>> = {
  disksInfo: adaptation('needsDisksInfo'),
  expandDisks: adaptation('adaptOptions'),
  vmi: code('shared-proto/cmd/requests.ts', 'completeVmi'),
  options: code('shared-proto/cmd/requests.ts', 'completeOptions'),
  acpiTableRead: code('vm-model/domain/json-reader.ts', 'ACPITable'),
  workloadDisruption: code('vm-model/payloads/migration-options.ts', 'AllowWorkloadDisruption'),
  attachments: code('launcher/cmd-server/complete-options.ts', 'interfaceDomainAttachment'),
  migrationCompleted: code('launcher/domain/wire-domain.ts', 'Completed'),
  noNullAlias: code('launcher/domain/wire-domain.ts', 'Alias'),
  noNullMac: code('launcher/domain/wire-domain.ts', 'MAC'),
  acpiTable: code('launcher/domain/wire-domain.ts', 'needsAcpiTableObject'),
};

const OF_ADDITIONS: Readonly<Record<string, RuleUser>> = {
  'VirtualMachineOptions.clusterConfig': syncOption('clusterConfig'),
  'VirtualMachineOptions.interfaceDomainAttachment': syncOption('interfaceDomainAttachment'),
  'VirtualMachineOptions.interfaceMigration': MIGRATION_TARGET,
  'VirtualMachineOptions.pluginsJson': syncOption('pluginsJson'),
  'VirtualMachineOptions.GraceHostDeviceAliases': syncOption('GraceHostDeviceAliases'),
  'ClusterConfig.FreePageReportingDisabled': syncOption('FreePageReportingDisabled'),
  'ClusterConfig.BochsDisplayForEFIGuests': syncOption('BochsDisplayForEFIGuests'),
  'ClusterConfig.SerialConsoleLogDisabled': syncOption('SerialConsoleLogDisabled'),
  'ClusterConfig.PCINUMAAwareTopologyEnabled': syncOption('PCINUMAAwareTopologyEnabled'),
  'ClusterConfig.VGPULiveMigrationEnabled': syncOption('VGPULiveMigrationEnabled'),
  'ClusterConfig.GraceIOVirtualizationEnabled': syncOption('GraceIOVirtualizationEnabled'),
  'MigrationOptions.ParallelMigrationThreads': MIGRATION_SOURCE,
  'MigrationOptions.AllowWorkloadDisruption': MIGRATION_SOURCE,
  'MigrationOptions.MaxDowntimeMs': MIGRATION_SOURCE,
  'MigrationOptions.StallDetectorOptions': MIGRATION_SOURCE,
  'MigrationOptions.Compression': MIGRATION_SOURCE,
  'Domain.Spec.Metadata.KubeVirt.Migration.EndTimestamp of a target': MIGRATION_TARGET,
  'Domain.Spec.Metadata.KubeVirt.Backup': code('launcher/metadata/cache.ts', 'Backup'),
  'Domain.Status.GuestPanicInfo': code('launcher/events/processor.ts', 'GuestPanicInfo'),
  'DomainStats.DirtyRate': code('launcher/domain/stats-json.ts', 'DirtyRate'),
  'Filesystem.disk': code('launcher/agent/guest-info-json.ts', 'disk'),
};

/** A field or key by name: `ClusterConfig.FreePageReportingDisabled`. */
export const placeName = (place: RulePlace): string =>
  place.kind === 'field' ? `${place.message}.${place.field}` : `${place.document}.${place.key}`;

/** A rule's name, and who follows it; undefined for a rule that nobody was named for. */
export interface FollowedRule {
  readonly rule: string;
  readonly user: RuleUser | undefined;
}

/** Every rule of the tables with its user, in the order in which the rules are printed. */
export function followedRules(): readonly FollowedRule[] {
  const contents = Object.keys(CONTENT_RULES) as (keyof typeof CONTENT_RULES)[];
  return [
    ...RPC_RULES.map(({ rpc }) => ({ rule: rpc, user: OF_RPCS[rpc] })),
    ...contents.map((id) => ({ rule: id, user: OF_CONTENTS[id] })),
    ...ADDITIONS.map(({ place }) => ({ rule: placeName(place), user: OF_ADDITIONS[placeName(place)] })),
  ];
}

/** A user in words. */
export function renderUser(user: RuleUser | undefined): string {
  if (user === undefined) return 'nobody';
  if ('later' in user) return `later: ${user.later}`;
  const also = user.also === undefined ? '' : `; later too: ${user.also}`;
  return `${user.name} in ${user.file}${also}`;
}
