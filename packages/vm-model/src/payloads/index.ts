export { type BackupCheckpoint, backupCheckpoint, type BackupOptions, backupOptions } from './backup.ts';
export { type DomainStatistics, domainStats } from './domain-stats.ts';
export { EMBEDDED, type EmbeddedField, type EmbeddedValue, printEmbedded, readEmbedded } from './embedded.ts';
export {
  type GuestFilesystem,
  guestFilesystems,
  type GuestInfo,
  guestInfo,
  type GuestUser,
  guestUsers,
} from './guest.ts';
export { type KubernetesEvent, kubernetesEvent, type KubernetesStatus, kubernetesStatus } from './kubernetes.ts';
export { type MigrationOptions, migrationOptions } from './migration-options.ts';
export { type Plugin, plugins } from './plugin.ts';
export {
  type SevMeasurementInfo,
  sevMeasurementInfo,
  type SevPlatformInfo,
  sevPlatformInfo,
  type SevSecretOptions,
  sevSecretOptions,
} from './sev.ts';
export type { Payload } from './struct.ts';
export { type NodeTopology, nodeTopology } from './topology.ts';
