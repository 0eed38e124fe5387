import type { Int32, Int64, Uint32 } from '../int64.ts';
import type { MigrationState } from './migration-state.ts';
import type { Condition, Quantity, Timestamp } from './metadata.ts';

/** Phases of a VMI. */
export type VmiPhase =
  '' | 'Pending' | 'Scheduling' | 'Scheduled' | 'WaitingForSync' | 'Running' | 'Succeeded' | 'Failed' | 'Unknown';

/** `status` of a VMI. */
export interface VmiStatus {
  phase?: VmiPhase;
  phaseTransitionTimestamps?: PhaseTransitionTimestamp[];
  nodeName?: string;
  reason?: string;
  conditions?: Condition[];
  interfaces?: VmiInterfaceStatus[];
  guestOSInfo?: VmiGuestOsInfo;
  migrationState?: MigrationState;
  migrationMethod?: string;
  migrationTransport?: string;
  migratedVolumes?: MigratedVolume[];
  qosClass?: string;
  launcherContainerImageVersion?: string;
  evacuationNodeName?: string;
  activePods?: Record<string, string>;
  volumeStatus?: VolumeStatus[];
  kernelBootStatus?: KernelBootStatus;
  fsFreezeStatus?: string;
  topologyHints?: { tscFrequency?: Int64 };
  virtualMachineRevisionName?: string;
  runtimeUser?: Int64;
  VSOCKCID?: Uint32;
  selinuxContext?: string;
  machine?: { type?: string };
  currentCPUTopology?: CpuTopology;
  memory?: MemoryStatus;
  deviceStatus?: unknown;
  changedBlockTracking?: ChangedBlockTracking;
  synchronizationAddresses?: string[];
  guestPanicInfo?: unknown;
}

/** When a phase was entered. */
export interface PhaseTransitionTimestamp {
  phase: VmiPhase;
  phaseTransitionTimestamp?: Timestamp | null;
}

/** One entry of `status.interfaces`. */
export interface VmiInterfaceStatus {
  name?: string;
  mac?: string;
  ipAddress?: string;
  ipAddresses?: string[];
  interfaceName?: string;
  podInterfaceName?: string;
  /** Comma list of `domain`, `guest-agent`, `multus-status`. */
  infoSource?: string;
  queueCount?: Int32;
  linkState?: string;
}

/** `status.guestOSInfo`. */
export interface VmiGuestOsInfo {
  name?: string;
  kernelRelease?: string;
  version?: string;
  prettyName?: string;
  versionId?: string;
  kernelVersion?: string;
  machine?: string;
  id?: string;
}

/** `status.currentCPUTopology`. */
export interface CpuTopology {
  cores?: Uint32;
  sockets?: Uint32;
  threads?: Uint32;
}

/** `status.memory`. */
export interface MemoryStatus {
  guestAtBoot?: Quantity;
  guestCurrent?: Quantity;
  guestRequested?: Quantity;
  memoryOverhead?: Quantity;
}

/** One entry of `status.volumeStatus`. */
export interface VolumeStatus {
  name: string;
  target: string;
  phase?: string;
  reason?: string;
  message?: string;
  persistentVolumeClaimInfo?: PersistentVolumeClaimInfo;
  hotplugVolume?: { attachPodName?: string; attachPodUID?: string };
  size?: Int64;
  memoryDumpVolume?: DomainMemoryDumpInfo;
  containerDiskVolume?: { checksum?: Uint32 };
}

/** What virt-controller copies of a claim into the volume status. */
export interface PersistentVolumeClaimInfo {
  claimName?: string;
  accessModes?: string[];
  volumeMode?: 'Block' | 'Filesystem';
  capacity?: Record<string, Quantity>;
  requests?: Record<string, Quantity>;
  preallocated?: boolean;
  filesystemOverhead?: string;
}

/** Memory dump on a volume. */
export interface DomainMemoryDumpInfo {
  startTimestamp?: Timestamp | null;
  endTimestamp?: Timestamp | null;
  claimName?: string;
  targetFileName?: string;
}

/** `status.kernelBootStatus`: checksums of what was booted. */
export interface KernelBootStatus {
  kernelInfo?: { checksum?: Uint32 };
  initrdInfo?: { checksum?: Uint32 };
}

/** A volume whose storage moves during a migration. */
export interface MigratedVolume {
  volumeName: string;
  sourcePVCInfo?: PersistentVolumeClaimInfo;
  destinationPVCInfo?: PersistentVolumeClaimInfo;
}

/** `status.changedBlockTracking`. */
export interface ChangedBlockTracking {
  state?: string;
  backupStatus?: VmiBackupStatus;
}

/** The backup that runs or ran last. */
export interface VmiBackupStatus {
  backupName?: string;
  startTimestamp?: Timestamp | null;
  endTimestamp?: Timestamp | null;
  completed?: boolean;
  failed?: boolean;
  backupMsg?: string;
  checkpointName?: string;
  volumes?: { volumeName?: string; diskTarget?: string; dataEndpoint?: string; mapEndpoint?: string }[];
  quiesceStatus?: string;
}
