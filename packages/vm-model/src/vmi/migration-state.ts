import type { Int64, Uint32 } from '../int64.ts';
import type { Quantity, Timestamp } from './metadata.ts';

/** `status.migrationState`. */
export interface MigrationState {
  startTimestamp?: Timestamp | null;
  endTimestamp?: Timestamp | null;
  targetNodeDomainReadyTimestamp?: Timestamp | null;
  targetNodeDomainDetected?: boolean;
  targetNodeAddress?: string;
  targetDirectMigrationNodePorts?: Record<string, number>;
  targetNode?: string;
  targetPod?: string;
  targetAttachmentPodUID?: string;
  sourceNode?: string;
  sourcePod?: string;
  completed?: boolean;
  failed?: boolean;
  abortRequested?: boolean;
  abortStatus?: 'Aborting' | 'Succeeded' | 'Failed' | '';
  failureReason?: string;
  migrationUid?: string;
  mode?: 'PreCopy' | 'PostCopy' | 'Paused' | '';
  migrationPolicyName?: string;
  migrationConfiguration?: MigrationConfiguration;
  migrationNetworkType?: string;
  targetCPUSet?: number[];
  targetNodeTopology?: string;
  sourcePersistentStatePVCName?: string;
  targetPersistentStatePVCName?: string;
  targetMemoryOverhead?: Quantity;
  sourceState?: MigrationSideState;
  targetState?: MigrationSideState;
}

/** What source and target of a decentralised migration say about themselves. */
export interface MigrationSideState {
  node?: string;
  pod?: string;
  migrationUID?: string;
  persistentStatePVCName?: string;
  selinuxContext?: string;
  syncAddress?: string;
  virtualMachineInstanceUID?: string;
  domainName?: string;
  domainNamespace?: string;
  nodeAddress?: string;
  nodeSelectors?: Record<string, string>;
  attachmentPodUID?: string;
  cpuSet?: number[];
  nodeTopology?: string;
  directMigrationNodePorts?: Record<string, number>;
  domainDetected?: boolean;
  domainReadyTimestamp?: Timestamp | null;
}

/** Settings of migrations, cluster wide or of one. */
export interface MigrationConfiguration {
  nodeDrainTaintKey?: string;
  parallelOutboundMigrationsPerNode?: Uint32;
  parallelMigrationsPerCluster?: Uint32;
  allowAutoConverge?: boolean;
  bandwidthPerMigration?: Quantity;
  completionTimeoutPerGiB?: Int64;
  progressTimeout?: Int64;
  unsafeMigrationOverride?: boolean;
  allowPostCopy?: boolean;
  allowWorkloadDisruption?: boolean;
  disableTLS?: boolean;
  network?: string;
  matchSELinuxLevelOnMigration?: boolean;
  utilityVolumesTimeout?: Int64;
  maxDowntimeMs?: Int64;
  /** Settings without a promise; carried to the launcher as they are. */
  experimental?: Record<string, unknown>;
}
