/** A libvirt domain as a call names it. `id` is -1 while it does not run. */
export interface DomainRef {
  readonly name: string;
  readonly uuid: string;
  readonly id: number;
}

/** Value of a libvirt typed parameter. */
export type ParamValue = string | number | bigint | boolean;
/** Typed parameters by name, as `vcpu.0.state`. */
export type Params = ReadonlyMap<string, ParamValue>;

/** libvirt's state of a domain and why, as numbers. */
export interface DomainStateReason {
  readonly state: number;
  readonly reason: number;
}

/** A failing disk of a domain. */
export interface DiskError {
  readonly disk: string;
  readonly error: number;
}

/** One domain's answer to the bulk statistics call. */
export interface DomainStatsRecord {
  readonly domain: DomainRef;
  readonly params: Params;
}

/** Numbers of the job that libvirt runs on a domain; `type` 0 is none. */
export interface DomainJob {
  readonly type: number;
  readonly params: Params;
}

/** Sizes of a disk in bytes: what the guest sees, what is used, what there is. */
export interface BlockInfo {
  readonly capacity: bigint;
  readonly allocation: bigint;
  readonly physical: bigint;
}

/** What the launcher asks of libvirt. What libvirt itself refuses is a `LibvirtCallError`. */
export interface LibvirtPort {
  /** @throws a libvirt error with code 42 when there is no such domain */
  lookupDomainByName(name: string): Promise<DomainRef>;
  listAllDomains(): Promise<readonly DomainRef[]>;
  defineXml(xml: string): Promise<DomainRef>;
  getState(domain: DomainRef): Promise<DomainStateReason>;
  /** @param flags 0 live, 2 inactive, 8 migratable */
  getXml(domain: DomainRef, flags: number): Promise<string>;
  /** Gives a domain an open descriptor, which it knows by the name of a group; libvirt has a copy of it from then on. */
  associateDescriptor(domain: DomainRef, group: string, descriptor: number): Promise<void>;
  /** @param flags 1 starts it paused */
  create(domain: DomainRef, flags: number): Promise<void>;
  suspend(domain: DomainRef): Promise<void>;
  resume(domain: DomainRef): Promise<void>;
  shutdown(domain: DomainRef, flags: number): Promise<void>;
  destroy(domain: DomainRef, flags: number): Promise<void>;
  /** As the machine's button does. */
  reset(domain: DomainRef): Promise<void>;
  /** @param flags 1 ACPI power button, 2 guest agent */
  reboot(domain: DomainRef, flags: number): Promise<void>;
  undefine(domain: DomainRef, flags: number): Promise<void>;
  /** @param flags 1 live, 2 config */
  attachDevice(domain: DomainRef, xml: string, flags: number): Promise<void>;
  /** The guest may take its time to let go. */
  detachDevice(domain: DomainRef, xml: string, flags: number): Promise<void>;
  updateDevice(domain: DomainRef, xml: string, flags: number): Promise<void>;
  /** Number of vCPUs. @param flags 1 live, 2 config */
  setVcpus(domain: DomainRef, count: number, flags: number): Promise<void>;
  /** The host CPUs that a vCPU may run on. @param flags 1 live, 2 config */
  pinVcpu(domain: DomainRef, vcpu: number, hostCpus: readonly number[], flags: number): Promise<void>;
  /** The host CPUs that QEMU's own threads may run on. @param flags 1 live, 2 config */
  pinEmulator(domain: DomainRef, hostCpus: readonly number[], flags: number): Promise<void>;
  getBlockInfo(domain: DomainRef, path: string): Promise<BlockInfo>;
  /** @param flags 1 size in bytes, 2 size of the device */
  blockResize(domain: DomainRef, path: string, size: bigint, flags: number): Promise<void>;
  /** Freezes all file systems of the guest. */
  fsFreeze(domain: DomainRef): Promise<void>;
  fsThaw(domain: DomainRef): Promise<void>;
  /** @param format 0 raw; @param flags 16 memory only */
  coreDump(domain: DomainRef, path: string, format: number, flags: number): Promise<void>;
  /** Picture of the first screen. */
  screenshot(domain: DomainRef): Promise<{ readonly mime: string; readonly data: Uint8Array }>;
  startDirtyRateCalc(domain: DomainRef, seconds: number): Promise<void>;
  /** SEV of the node. */
  getSevInfo(): Promise<Params>;
  getLaunchSecurityInfo(domain: DomainRef): Promise<Params>;
  setLaunchSecurityState(
    domain: DomainRef,
    secret: { readonly header: string; readonly secret: string },
  ): Promise<void>;
  setTime(domain: DomainRef, seconds: number, nanoseconds: number): Promise<void>;
  /** Only disks that have an error. */
  getDiskErrors(domain: DomainRef): Promise<readonly DiskError[]>;
  getJobInfo(domain: DomainRef): Promise<{ readonly type: number }>;
  /** @param flags 1 asks for the last completed job */
  getJobStats(domain: DomainRef, flags: number): Promise<DomainJob>;
  /** Cancels the job that runs. */
  abortJob(domain: DomainRef): Promise<void>;
  /** Begins a backup together with a checkpoint; returns when it has begun. */
  backupBegin(domain: DomainRef, backupXml: string, checkpointXml: string): Promise<void>;
  /** @param flags 1 redefines, 4 looks whether its bitmaps are there */
  createCheckpoint(domain: DomainRef, xml: string, flags: number): Promise<void>;
  /** Sends a QMP command as it is. */
  monitorCommand(domain: DomainRef, command: string): Promise<string>;
  /** Sends a guest agent command with libvirt's own time limit. */
  agentCommand(domain: DomainRef, command: string): Promise<string>;
  guestInfo(domain: DomainRef, types: number): Promise<Params>;
  /** How long libvirt waits for an answer of the guest agent from then on; without it, for ever. */
  setAgentTimeout(domain: DomainRef, seconds: number): Promise<void>;
  /** By the guest agent. */
  setUserPassword(domain: DomainRef, user: string, password: string): Promise<void>;
  /** By the guest agent: the user has these keys and no others. */
  setAuthorizedSshKeys(domain: DomainRef, user: string, keys: readonly string[]): Promise<void>;
  allDomainStats(types: number, flags: number): Promise<readonly DomainStatsRecord[]>;
  memoryStats(domain: DomainRef, maxStats: number): Promise<ReadonlyMap<number, bigint>>;
  /** Per vCPU, for each host CPU, whether it may run there. */
  vcpuPinInfo(domain: DomainRef): Promise<readonly (readonly boolean[])[]>;
  /** libvirt's number of the hypervisor's version: major * 1,000,000 + minor * 1,000 + release. */
  getVersion(): Promise<bigint>;
  /** Asks for what a domain of this kind could have, which makes the daemon look at QEMU. */
  getDomainCapabilities(arch: string, machine: string, virtType: string): Promise<string>;
}

/** libvirt's error codes that decide something here. */
export const LIBVIRT_ERROR = {
  internal: 1,
  /** Also that the connection to libvirt was lost over the call. */
  systemError: 38,
  noDomain: 42,
  operationInvalid: 55,
  argumentUnsupported: 74,
  /** Also that libvirt has not answered the call in time. */
  operationTimeout: 68,
  operationUnsupported: 84,
  agentUnresponsive: 86,
} as const;

/** An error that libvirt reported, as the launcher sees it whichever client raised it. */
export class LibvirtCallError extends Error {
  override readonly name = 'LibvirtCallError';
  readonly code: number;
  readonly domain: number;
  /** libvirt's own text; `message` is the form in which Go's binding prints the whole error. */
  readonly text: string;
  /** libvirt was lost before it answered: what was asked of it may have happened, or may go on. */
  readonly isUnanswered: boolean;

  constructor(code: number, domain: number, text: string, options: ErrorOptions & { isUnanswered?: boolean } = {}) {
    super(`virError(Code=${code}, Domain=${domain}, Message='${text}')`, options);
    this.code = code;
    this.domain = domain;
    this.text = text;
    this.isUnanswered = options.isUnanswered ?? false;
  }
}

/** True when libvirt said exactly this. */
export function isLibvirtCode(caught: unknown, code: number): boolean {
  return caught instanceof LibvirtCallError && caught.code === code;
}

/** True when it is not known whether libvirt has done what failed. */
export function isUnanswered(caught: unknown): boolean {
  return caught instanceof LibvirtCallError && caught.isUnanswered;
}

/** True when libvirt says that the domain does not exist. */
export function isNoDomain(caught: unknown): boolean {
  return isLibvirtCode(caught, LIBVIRT_ERROR.noDomain);
}
