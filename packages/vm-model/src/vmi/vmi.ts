import type { Int32, Int64, Uint32 } from '../int64.ts';
import type { DomainSpecDevices } from './devices.ts';
import type { ObjectMeta, Quantity, ResourceRequirements } from './metadata.ts';
import type { Network } from './networks.ts';
import type { VmiStatus } from './status.ts';
import type { AccessCredential, UtilityVolume, Volume } from './volumes.ts';

/**
 * A VirtualMachineInstance as parsed from JSON.
 *
 * The interfaces name what KubeVirt v1.9 knows; whatever else an object carries stays in it and is written back.
 *
 * @source KubeVirt v1.9.0 staging/src/kubevirt.io/api/core/v1/types.go
 */
export interface Vmi {
  apiVersion?: string;
  kind?: string;
  metadata: ObjectMeta;
  spec: VmiSpec;
  status?: VmiStatus;
}

/** `spec` of a VMI. */
export interface VmiSpec {
  domain: VmiDomain;
  architecture?: string;
  networks?: Network[];
  volumes?: Volume[];
  utilityVolumes?: UtilityVolume[];
  terminationGracePeriodSeconds?: Int64;
  evictionStrategy?: EvictionStrategy;
  startStrategy?: 'Paused';
  accessCredentials?: AccessCredential[];
  livenessProbe?: Probe;
  readinessProbe?: Probe;
  hostname?: string;
  subdomain?: string;
  nodeSelector?: Record<string, string>;
  affinity?: unknown;
  schedulerName?: string;
  tolerations?: unknown[];
  topologySpreadConstraints?: unknown[];
  resourceClaims?: unknown[];
  priorityClassName?: string;
  dnsPolicy?: string;
  dnsConfig?: { nameservers?: string[]; searches?: string[]; options?: { name?: string; value?: string }[] };
}

/** What happens when the node is drained. */
export type EvictionStrategy = 'None' | 'LiveMigrate' | 'LiveMigrateIfPossible' | 'External';

/** `spec.domain`: the machine. */
export interface VmiDomain {
  resources?: ResourceRequirements;
  cpu?: VmiCpu;
  memory?: VmiMemory;
  machine?: VmiMachine;
  firmware?: VmiFirmware;
  clock?: VmiClock;
  features?: VmiFeatures;
  devices: DomainSpecDevices;
  ioThreadsPolicy?: 'shared' | 'auto' | 'supplementalPool';
  ioThreads?: { supplementalPoolThreadCount?: Uint32 };
  chassis?: VmiChassis;
  launchSecurity?: VmiLaunchSecurity;
  rebootPolicy?: 'Reboot' | 'Terminate';
}

/** `spec.domain.cpu`. */
export interface VmiCpu {
  cores?: Uint32;
  sockets?: Uint32;
  maxSockets?: Uint32;
  threads?: Uint32;
  model?: string;
  features?: { name: string; policy?: string }[];
  dedicatedCpuPlacement?: boolean;
  isolateEmulatorThread?: boolean;
  numa?: { guestMappingPassthrough?: object };
  realtime?: { mask?: string };
}

/** `spec.domain.memory`. */
export interface VmiMemory {
  guest?: Quantity;
  maxGuest?: Quantity;
  hugepages?: { pageSize?: string };
  reservedOverhead?: { addedOverhead?: Quantity; memLock?: 'Required' | 'NotRequired' };
}

/** `spec.domain.machine`. */
export interface VmiMachine {
  type?: string;
}

/** `spec.domain.firmware`. */
export interface VmiFirmware {
  uuid?: string;
  serial?: string;
  bootloader?: VmiBootloader;
  kernelBoot?: KernelBoot;
  acpi?: { slicNameRef?: string; msdmNameRef?: string };
}

/** `spec.domain.firmware.bootloader`. */
export interface VmiBootloader {
  bios?: { useSerial?: boolean };
  efi?: { secureBoot?: boolean; persistent?: boolean };
}

/** `spec.domain.firmware.kernelBoot`. */
export interface KernelBoot {
  kernelArgs?: string;
  container?: KernelBootContainer;
}

/** Image that holds the kernel and the initrd. */
export interface KernelBootContainer {
  image?: string;
  imagePullSecret?: string;
  imagePullPolicy?: string;
  kernelPath?: string;
  initrdPath?: string;
}

/** `spec.domain.clock`. */
export interface VmiClock {
  utc?: { offsetSeconds?: number };
  timezone?: string;
  timer?: VmiClockTimers;
}

/** `spec.domain.clock.timer`. */
export interface VmiClockTimers {
  hpet?: { tickPolicy?: string; present?: boolean };
  kvm?: { present?: boolean };
  pit?: { tickPolicy?: string; present?: boolean };
  rtc?: { tickPolicy?: string; present?: boolean; track?: string };
  hyperv?: { present?: boolean };
}

/** A feature that is on when present, unless `enabled` says false. */
export interface VmiFeatureState {
  enabled?: boolean;
}

/** `spec.domain.features`. */
export interface VmiFeatures {
  acpi?: VmiFeatureState;
  apic?: VmiFeatureState & { endOfInterrupt?: boolean };
  hyperv?: VmiFeatureHyperv;
  hypervPassthrough?: VmiFeatureState;
  smm?: VmiFeatureState;
  kvm?: { hidden?: boolean };
  pvspinlock?: VmiFeatureState;
}

/** `spec.domain.features.hyperv`. */
export interface VmiFeatureHyperv {
  relaxed?: VmiFeatureState;
  vapic?: VmiFeatureState;
  spinlocks?: VmiFeatureState & { spinlocks?: Uint32 };
  vpindex?: VmiFeatureState;
  runtime?: VmiFeatureState;
  synic?: VmiFeatureState;
  synictimer?: VmiFeatureState & { direct?: VmiFeatureState };
  reset?: VmiFeatureState;
  vendorid?: VmiFeatureState & { vendorid?: string };
  frequencies?: VmiFeatureState;
  reenlightenment?: VmiFeatureState;
  tlbflush?: VmiFeatureState & { direct?: VmiFeatureState; extended?: VmiFeatureState };
  ipi?: VmiFeatureState;
  evmcs?: VmiFeatureState;
}

/** `spec.domain.chassis`. */
export interface VmiChassis {
  manufacturer?: string;
  version?: string;
  serial?: string;
  asset?: string;
  sku?: string;
}

/** `spec.domain.launchSecurity`. */
export interface VmiLaunchSecurity {
  sev?: VmiSev;
  snp?: object;
  tdx?: object;
}

/** `spec.domain.launchSecurity.sev`. */
export interface VmiSev {
  policy?: { encryptedState?: boolean };
  attestation?: object;
  session?: string;
  dhCert?: string;
}

/** `spec.livenessProbe` and `spec.readinessProbe`. */
export interface Probe {
  exec?: { command?: string[] };
  guestAgentPing?: object;
  httpGet?: unknown;
  tcpSocket?: unknown;
  initialDelaySeconds?: Int32;
  timeoutSeconds?: Int32;
  periodSeconds?: Int32;
  successThreshold?: Int32;
  failureThreshold?: Int32;
}
