/**
 * The parts of the VMI and of the domain that the handler reads or writes.
 *
 * Objects keep whatever else they carry: they are plain parsed JSON, and a writer starts from a copy of what it read.
 */

/** Time as the API writes it: RFC 3339, whole seconds, UTC. */
export type Timestamp = string;

/** Names one object: for events, logs and cleanup of a VMI that is gone. */
export interface ObjectRef {
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}

/** `metadata` of a Kubernetes object. */
export interface ObjectMeta {
  name: string;
  namespace: string;
  uid: string;
  resourceVersion?: string;
  generation?: number;
  creationTimestamp?: Timestamp | null;
  deletionTimestamp?: Timestamp | null;
  deletionGracePeriodSeconds?: number;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
  finalizers?: string[];
}

/** Phases of a VMI. */
export type VmiPhase =
  '' | 'Pending' | 'Scheduling' | 'Scheduled' | 'WaitingForSync' | 'Running' | 'Succeeded' | 'Failed' | 'Unknown';

/** Condition of a VMI; unset times are `null` in JSON. */
export interface Condition {
  type: string;
  status: 'True' | 'False' | 'Unknown';
  lastProbeTime?: Timestamp | null;
  lastTransitionTime?: Timestamp | null;
  reason?: string;
  message?: string;
}

/** One entry of `status.interfaces`. */
export interface InterfaceStatus {
  name?: string;
  mac?: string;
  ipAddress?: string;
  ipAddresses?: string[];
  interfaceName?: string;
  infoSource?: string;
  queueCount?: number;
  linkState?: string;
  podInterfaceName?: string;
}

/** What virt-controller copies of a claim into the volume status. */
export interface PvcInfo {
  claimName?: string;
  accessModes?: string[];
  volumeMode?: string;
  capacity?: Record<string, string>;
  requests?: Record<string, string>;
  preallocated?: boolean;
  filesystemOverhead?: string;
}

/** One entry of `status.volumeStatus`. */
export interface VolumeStatus {
  name: string;
  target: string;
  phase?: string;
  reason?: string;
  message?: string;
  size?: number;
  persistentVolumeClaimInfo?: PvcInfo;
  hotplugVolume?: { attachPodName?: string; attachPodUID?: string };
  memoryDumpVolume?: {
    claimName?: string;
    targetFileName?: string;
    startTimestamp?: Timestamp | null;
    endTimestamp?: Timestamp | null;
  };
  containerDiskVolume?: { checksum?: number };
}

/** State of a migration that concerns the VMI. */
export interface MigrationState {
  startTimestamp?: Timestamp | null;
  endTimestamp?: Timestamp | null;
  completed?: boolean;
  failed?: boolean;
  mode?: string;
  sourceNode?: string;
  targetNode?: string;
  targetNodeAddress?: string;
  targetMemoryOverhead?: string;
  sourceState?: { node?: string; syncAddress?: string | null };
  targetState?: { node?: string; syncAddress?: string | null; nodeAddress?: string | null };
}

/** Operating system of the guest as the agent reports it. */
export interface GuestOsInfo {
  name?: string;
  kernelRelease?: string;
  version?: string;
  prettyName?: string;
  versionId?: string;
  kernelVersion?: string;
  machine?: string;
  id?: string;
}

/** Backup of the VMI as its status shows it. */
export interface BackupStatus {
  backupName?: string;
  startTimestamp?: Timestamp | null;
  endTimestamp?: Timestamp | null;
  completed?: boolean;
  failed?: boolean;
  backupMsg?: string;
  checkpointName?: string;
  volumes?: unknown;
  quiesceStatus?: string;
}

/** `status` of a VMI. */
export interface VmiStatus {
  phase?: VmiPhase;
  phaseTransitionTimestamps?: { phase: VmiPhase; phaseTransitionTimestamp: Timestamp }[];
  nodeName?: string;
  reason?: string;
  conditions?: Condition[];
  interfaces?: InterfaceStatus[];
  volumeStatus?: VolumeStatus[];
  activePods?: Record<string, string>;
  runtimeUser?: number;
  guestOSInfo?: GuestOsInfo;
  fsFreezeStatus?: string;
  machine?: { type: string };
  memory?: { guestAtBoot?: string; guestCurrent?: string; guestRequested?: string; memoryOverhead?: string };
  selinuxContext?: string;
  migrationMethod?: string;
  migrationTransport?: string;
  migrationState?: MigrationState;
  migratedVolumes?: { volumeName: string }[];
  topologyHints?: { tscFrequency?: number };
  changedBlockTracking?: { state?: string; backupStatus?: BackupStatus };
  kernelBootStatus?: { kernelInfo?: { checksum?: number }; initrdInfo?: { checksum?: number } };
  qosClass?: string;
  VSOCKCID?: number;
}

/** One volume of the spec: a name and exactly one source. */
export interface Volume {
  name: string;
  persistentVolumeClaim?: { claimName: string; hotpluggable?: boolean };
  dataVolume?: { name: string; hotpluggable?: boolean };
  hostDisk?: { path: string; type: string; capacity?: string; shared?: boolean };
  containerDisk?: { image: string; path?: string };
  memoryDump?: { claimName: string; hotpluggable?: boolean };
  cloudInitNoCloud?: object;
  cloudInitConfigDrive?: object;
  configMap?: object;
  secret?: object;
  downwardAPI?: object;
  sysprep?: object;
  serviceAccount?: object;
  emptyDisk?: object;
  ephemeral?: { persistentVolumeClaim?: { claimName: string } };
}

/** One disk of the spec. */
export interface Disk {
  name: string;
  disk?: { bus?: string; readonly?: boolean };
  cdrom?: { bus?: string; readonly?: boolean };
  lun?: { bus?: string; reservation?: boolean };
}

/** One network interface of the spec: a name and one binding. */
export interface Interface {
  name: string;
  model?: string;
  macAddress?: string;
  state?: string;
  masquerade?: object;
  bridge?: object;
  sriov?: object;
  passtBinding?: object;
  binding?: { name: string };
}

/** One network of the spec. */
export interface Network {
  name: string;
  pod?: object;
  multus?: { networkName: string; default?: boolean };
}

/** `{enabled?: boolean}` as KubeVirt's feature switches are written. */
export interface FeatureState {
  enabled?: boolean;
}

/** `spec` of a VMI. */
export interface VmiSpec {
  domain: {
    devices: {
      disks?: Disk[];
      interfaces?: Interface[];
      filesystems?: { name: string; virtiofs?: object }[];
      gpus?: { name: string; deviceName: string }[];
      hostDevices?: { name: string; deviceName: string }[];
      autoattachVSOCK?: boolean;
      autoattachPodInterface?: boolean;
      downwardMetrics?: object;
    };
    cpu?: {
      cores?: number;
      sockets?: number;
      threads?: number;
      model?: string;
      dedicatedCpuPlacement?: boolean;
      isolateEmulatorThread?: boolean;
      realtime?: { mask?: string };
    };
    memory?: { guest?: string; maxGuest?: string; reservedOverhead?: { memLock?: string } };
    resources?: { requests?: Record<string, string>; limits?: Record<string, string> };
    firmware?: { kernelBoot?: { container?: { image?: string; kernelPath?: string; initrdPath?: string } } };
    features?: { hyperv?: Record<string, FeatureState>; hypervPassthrough?: FeatureState };
    launchSecurity?: {
      sev?: { attestation?: object; session?: string; dhCert?: string };
      snp?: object;
      tdx?: object;
    };
    machine?: { type?: string };
  };
  volumes?: Volume[];
  utilityVolumes?: { name: string }[];
  networks?: Network[];
  accessCredentials?: {
    sshPublicKey?: { propagationMethod?: { qemuGuestAgent?: object } };
    userPassword?: object;
  }[];
  terminationGracePeriodSeconds?: number;
  evictionStrategy?: string;
  architecture?: string;
}

/** A VirtualMachineInstance as the handler sees it. */
export interface Vmi {
  apiVersion?: string;
  kind?: string;
  metadata: ObjectMeta;
  spec: VmiSpec;
  status?: VmiStatus;
}

/** Devices of a domain, in the JSON form of notify events (Go field names). */
export interface DomainDevices {
  Interfaces?: DomainInterface[] | null;
  Channels?: { Target?: { Name?: string; State?: string } | null }[] | null;
  Disks?: DomainDisk[] | null;
  HostDevices?: { Alias?: DomainAlias | null }[] | null;
}

/** Alias of a device; user-defined ones carry `ua-` in libvirt's XML. */
export interface DomainAlias {
  Name?: string;
}

/** Network interface of a domain. */
export interface DomainInterface {
  Alias?: DomainAlias | null;
  MAC?: { MAC?: string } | null;
  Driver?: { Queues?: number | null } | null;
  LinkState?: { State?: string } | null;
}

/** Disk of a domain. */
export interface DomainDisk {
  Alias?: DomainAlias | null;
  Target?: { Device?: string } | null;
  Source?: { File?: string; Dev?: string; DataStore?: unknown } | null;
}

/** KubeVirt's own data in the domain's metadata. */
export interface DomainMetadata {
  UID?: string;
  GracePeriod?: {
    DeletionGracePeriodSeconds?: number;
    DeletionTimestamp?: Timestamp | null;
    MarkedForGracefulShutdown?: boolean | null;
  } | null;
  Migration?: { UID?: string; StartTimestamp?: Timestamp | null; EndTimestamp?: Timestamp | null } | null;
  AccessCredential?: { Succeeded?: boolean; Message?: string } | null;
  MemoryDump?: {
    FileName?: string;
    StartTimestamp?: Timestamp | null;
    EndTimestamp?: Timestamp | null;
    Completed?: boolean;
    Failed?: boolean;
    FailureReason?: string;
  } | null;
  Backup?: {
    Name?: string;
    StartTimestamp?: Timestamp | null;
    EndTimestamp?: Timestamp | null;
    Completed?: boolean;
    Failed?: boolean;
    BackupMsg?: string;
    CheckpointName?: string;
    Volumes?: string;
    QuiesceStatus?: string;
  } | null;
}

/** Spec of a domain. */
export interface DomainSpec {
  Type?: string;
  Name?: string;
  OS?: { Type?: { Arch?: string; Machine?: string } } | null;
  CurrentMemory?: { Value?: number | bigint | string; Unit?: string } | null;
  Features?: { ACPI?: object | null } | null;
  CPUTune?: { EmulatorPin?: { CPUSet?: string } | null } | null;
  Devices?: DomainDevices | null;
  Metadata?: { KubeVirt?: DomainMetadata | null } | null;
}

/** Status of a domain. */
export interface DomainStatus {
  Status?: string;
  Reason?: string;
  Interfaces?: { Mac?: string; Ip?: string; IPs?: string[] | null; InterfaceName?: string }[] | null;
  OSInfo?: {
    Name?: string;
    KernelRelease?: string;
    Version?: string;
    PrettyName?: string;
    VersionId?: string;
    KernelVersion?: string;
    Machine?: string;
    Id?: string;
  } | null;
  FSFreezeStatus?: { Status?: string } | null;
}

/** A domain object as launchers send it. */
export interface Domain {
  ObjectMeta: { name: string; namespace: string; uid?: string; deletionTimestamp?: Timestamp | null };
  Spec?: DomainSpec | null;
  Status?: DomainStatus | null;
}

/** Key of an object in stores and queues. */
export function objectKey(meta: { readonly namespace: string; readonly name: string }): string {
  return `${meta.namespace}/${meta.name}`;
}

/** Namespace and name of a key; a key without a slash is a name. */
export function splitKey(key: string): { namespace: string; name: string } {
  const at = key.indexOf('/');
  return at < 0 ? { namespace: '', name: key } : { namespace: key.slice(0, at), name: key.slice(at + 1) };
}

/** Reference to a VMI for events and logs. */
export function vmiRef(vmi: Vmi): ObjectRef {
  const { namespace, name, uid } = vmi.metadata;
  return { kind: 'VirtualMachineInstance', namespace, name, uid };
}

/** Phase of a VMI; empty when it has no status yet. */
export function phaseOf(vmi: Vmi): VmiPhase {
  return vmi.status?.phase ?? '';
}

/** True when the VMI has ended for good. */
export function isFinal(vmi: Vmi): boolean {
  const phase = phaseOf(vmi);
  return phase === 'Succeeded' || phase === 'Failed';
}

/** True when the VMI runs without root rights in its pod. */
export function isNonRoot(vmi: Vmi): boolean {
  return (vmi.status?.runtimeUser ?? 0) !== 0 || vmi.metadata.annotations?.['kubevirt.io/nonroot'] !== undefined;
}

/** UID that the launcher wrote into the domain; empty when it wrote none. */
export function domainUid(domain: Domain): string {
  return domain.Spec?.Metadata?.KubeVirt?.UID ?? '';
}

/** API time of a clock reading: whole seconds, UTC. */
export function apiTime(ms: number): Timestamp {
  return `${new Date(Math.floor(ms / 1000) * 1000).toISOString().slice(0, 19)}Z`;
}
