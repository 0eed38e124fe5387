import type { Duplex } from 'node:stream';
import type { Caller, CallOptions, StreamOptions } from './caller.ts';
import type * as wire from './gen/types.gen.ts';
import { collectStream } from './streams.ts';
import { TypedParams } from './typed-params.ts';
import type { TypedParam } from './typed-params.ts';

/** Calls that last as long as the guest's memory or disk is big have no deadline by default. */
const UNLIMITED: CallOptions = { timeoutMs: 0 };

/** State of a job as GET_JOB_STATS tells it. */
export interface JobStats {
  /** `DomainJobType`. */
  readonly type: number;
  readonly params: TypedParams;
}

/** A screenshot as the daemon made it: PNG or PPM. */
export interface Screenshot {
  readonly mime: string | null;
  readonly data: Uint8Array;
}

/**
 * Handle of one domain. It costs nothing, needs no freeing, and outlives reconnections: the daemon finds a domain by
 * its uuid. Flags are the constants of the package (`DomainXMLFlags` ...), 0 unless said otherwise.
 */
export class Domain {
  readonly name: string;
  /** With dashes, lower case. */
  readonly uuid: string;
  readonly #caller: Caller;
  #id: number;

  constructor(caller: Caller, ref: wire.DomainRef) {
    this.#caller = caller;
    this.name = ref.name;
    this.uuid = ref.uuid;
    this.#id = ref.id;
  }

  /** Number of the running domain as last told, -1 when it did not run. */
  get id(): number {
    return this.#id;
  }

  /** The domain as calls take it. */
  get ref(): wire.DomainRef {
    return { name: this.name, uuid: this.uuid, id: this.#id };
  }

  // State and description

  /** State (`DomainState`) and reason (`DomainRunningReason` ...); takes no job, so it never waits for one. */
  getState(options?: CallOptions): Promise<wire.DomainGetStateRet> {
    return this.#caller.call('DOMAIN_GET_STATE', { dom: this.ref, flags: 0 }, options);
  }

  /** State, memory in KiB, CPU time in ns; takes no job. */
  getInfo(options?: CallOptions): Promise<wire.DomainGetInfoRet> {
    return this.#caller.call('DOMAIN_GET_INFO', { dom: this.ref }, options);
  }

  /** The domain's XML; flags `DomainXMLFlags`. */
  async getXmlDesc(flags = 0, options?: CallOptions): Promise<string> {
    return (await this.#caller.call('DOMAIN_GET_XML_DESC', { dom: this.ref, flags }, options)).xml;
  }

  /** True while the domain runs or is paused. */
  async isActive(options?: CallOptions): Promise<boolean> {
    return (await this.#caller.call('DOMAIN_IS_ACTIVE', { dom: this.ref }, options)).active !== 0;
  }

  /** True when the domain stays defined after it stops. */
  async isPersistent(options?: CallOptions): Promise<boolean> {
    return (await this.#caller.call('DOMAIN_IS_PERSISTENT', { dom: this.ref }, options)).persistent !== 0;
  }

  /** State of the control channel to QEMU: `DomainControlState`, time in ms. */
  getControlInfo(options?: CallOptions): Promise<wire.DomainGetControlInfoRet> {
    return this.#caller.call('DOMAIN_GET_CONTROL_INFO', { dom: this.ref, flags: 0 }, options);
  }

  /** Messages about tainting, deprecation, I/O errors; flags `DomainMessageType`. */
  async getMessages(flags = 0, options?: CallOptions): Promise<readonly string[]> {
    return (await this.#caller.call('DOMAIN_GET_MESSAGES', { dom: this.ref, flags }, options)).msgs;
  }

  /** Description, title or an element of the user's; type `DomainMetadataType`, flags `DomainModificationImpact`. */
  async getMetadata(type: number, uri: string | null = null, flags = 0, options?: CallOptions): Promise<string> {
    const args = { dom: this.ref, type, uri, flags };
    return (await this.#caller.call('DOMAIN_GET_METADATA', args, options)).metadata;
  }

  /** Sets metadata; null removes it. An ELEMENT needs its prefix (`key`) and namespace (`uri`). */
  setMetadata(
    metadata: { readonly type: number; readonly text: string | null; readonly key?: string; readonly uri?: string },
    flags = 0,
    options?: CallOptions,
  ): Promise<void> {
    const { type, text, key = null, uri = null } = metadata;
    return this.#caller.call('DOMAIN_SET_METADATA', { dom: this.ref, type, metadata: text, key, uri, flags }, options);
  }

  // Lifecycle

  /**
   * Gives the domain file descriptors, which its description names by `fdgroup`. The daemon keeps them until the connection
   * ends or the domain is forgotten, however often it stops; a second call with the same name replaces them. libvirt 9.0
   * or newer.
   *
   * @param descriptors copied at once; the connection needs the option `copyDescriptors`.
   * @param flags `DomainFDAssociateFlags`
   */
  fdAssociate(name: string, descriptors: readonly number[], flags = 0, options?: CallOptions): Promise<void> {
    const args = { dom: this.ref, name, flags };
    return this.#caller.call('DOMAIN_FD_ASSOCIATE', args, { ...options, descriptors });
  }

  /** Starts a defined domain; flags `DomainCreateFlags`. */
  async create(flags = 0, options?: CallOptions): Promise<void> {
    const { dom } = await this.#caller.call('DOMAIN_CREATE_WITH_FLAGS', { dom: this.ref, flags }, options);
    this.#id = dom.id;
  }

  /** Pauses the vCPUs. */
  suspend(options?: CallOptions): Promise<void> {
    return this.#caller.call('DOMAIN_SUSPEND', { dom: this.ref }, options);
  }

  /** Lets a paused domain go on. */
  resume(options?: CallOptions): Promise<void> {
    return this.#caller.call('DOMAIN_RESUME', { dom: this.ref }, options);
  }

  /** Asks the guest to power off and returns at once; flags `DomainShutdownFlagValues`. */
  shutdown(flags = 0, options?: CallOptions): Promise<void> {
    return this.#caller.call('DOMAIN_SHUTDOWN_FLAGS', { dom: this.ref, flags }, options);
  }

  /** Asks the guest to reboot; flags `DomainRebootFlagValues`. */
  reboot(flags = 0, options?: CallOptions): Promise<void> {
    return this.#caller.call('DOMAIN_REBOOT', { dom: this.ref, flags }, options);
  }

  /** Resets the machine as its button would. */
  reset(options?: CallOptions): Promise<void> {
    return this.#caller.call('DOMAIN_RESET', { dom: this.ref, flags: 0 }, options);
  }

  /** Ends QEMU; flags `DomainDestroyFlagsValues`: GRACEFUL fails rather than to use SIGKILL. */
  async destroy(flags = 0, options?: CallOptions): Promise<void> {
    await this.#caller.call('DOMAIN_DESTROY_FLAGS', { dom: this.ref, flags }, options);
    this.#id = -1;
  }

  /** Forgets the definition; flags `DomainUndefineFlagsValues`. */
  undefine(flags = 0, options?: CallOptions): Promise<void> {
    return this.#caller.call('DOMAIN_UNDEFINE_FLAGS', { dom: this.ref, flags }, options);
  }

  /** Saves memory and state to a file and stops; flags `DomainSaveRestoreFlags`. */
  save(to: string, flags = 0, options: CallOptions = UNLIMITED): Promise<void> {
    return this.#caller.call('DOMAIN_SAVE_FLAGS', { dom: this.ref, to, dxml: null, flags }, options);
  }

  /** Writes the guest's memory to a file of the daemon's host; format `DomainCoreDumpFormat`. */
  coreDump(to: string, format: number, flags: number, options: CallOptions = UNLIMITED): Promise<void> {
    const args = { dom: this.ref, to, dumpformat: format, flags };
    return this.#caller.call('DOMAIN_CORE_DUMP_WITH_FORMAT', args, options);
  }

  // Devices

  /** Adds a device; flags `DomainDeviceModifyFlags`. */
  attachDevice(xml: string, flags: number, options?: CallOptions): Promise<void> {
    return this.#caller.call('DOMAIN_ATTACH_DEVICE_FLAGS', { dom: this.ref, xml, flags }, options);
  }

  /** Changes a device; flags `DomainDeviceModifyFlags`. */
  updateDevice(xml: string, flags: number, options?: CallOptions): Promise<void> {
    return this.#caller.call('DOMAIN_UPDATE_DEVICE_FLAGS', { dom: this.ref, xml, flags }, options);
  }

  /** Removes a device. Success does not mean that it is gone: wait for `deviceRemoved`. */
  detachDevice(xml: string, flags: number, options?: CallOptions): Promise<void> {
    return this.#caller.call('DOMAIN_DETACH_DEVICE_FLAGS', { dom: this.ref, xml, flags }, options);
  }

  /** Removes a device by its alias; as `detachDevice`. */
  detachDeviceAlias(alias: string, flags: number, options?: CallOptions): Promise<void> {
    return this.#caller.call('DOMAIN_DETACH_DEVICE_ALIAS', { dom: this.ref, alias, flags }, options);
  }

  /** Resizes a disk: KiB, or bytes with flag BYTES of `DomainBlockResizeFlags`. */
  blockResize(disk: string, size: bigint, flags: number, options?: CallOptions): Promise<void> {
    return this.#caller.call('DOMAIN_BLOCK_RESIZE', { dom: this.ref, disk, size, flags }, options);
  }

  /** Size of a disk in bytes; by target (`vda`) or path. */
  getBlockInfo(path: string, options?: CallOptions): Promise<wire.DomainGetBlockInfoRet> {
    return this.#caller.call('DOMAIN_GET_BLOCK_INFO', { dom: this.ref, path, flags: 0 }, options);
  }

  /** Disks with an I/O error (`DomainDiskErrorCode`). */
  async getDiskErrors(options?: CallOptions): Promise<readonly wire.DomainDiskError[]> {
    const ask = (maxerrors: number): Promise<wire.DomainGetDiskErrorsRet> =>
      this.#caller.call('DOMAIN_GET_DISK_ERRORS', { dom: this.ref, maxerrors, flags: 0 }, options);
    const { nerrors } = await ask(0);
    return nerrors === 0 ? [] : (await ask(nerrors)).errors;
  }

  // CPU and memory

  /** Value by `DomainMemoryStatTags`: KiB, except faults and page counts, and LAST_UPDATE in s. */
  async memoryStats(options?: CallOptions): Promise<ReadonlyMap<number, bigint>> {
    const args = { dom: this.ref, maxStats: 64, flags: 0 };
    const { stats } = await this.#caller.call('DOMAIN_MEMORY_STATS', args, options);
    return new Map(stats.map(({ tag, val }) => [tag, val]));
  }

  /** Sets the number of vCPUs; flags `DomainVcpuFlags`. */
  setVcpus(count: number, flags: number, options?: CallOptions): Promise<void> {
    return this.#caller.call('DOMAIN_SET_VCPUS_FLAGS', { dom: this.ref, nvcpus: count, flags }, options);
  }

  /** Sets the memory in KiB; flags `DomainMemoryModFlags`. */
  setMemory(memoryKiB: bigint, flags: number, options?: CallOptions): Promise<void> {
    return this.#caller.call('DOMAIN_SET_MEMORY_FLAGS', { dom: this.ref, memory: memoryKiB, flags }, options);
  }

  /** CPUs each vCPU may run on, one bitmap of `mapBytes` bytes per vCPU, low bit first. */
  async getVcpuPinInfo(
    vcpus: number,
    mapBytes: number,
    flags = 0,
    options?: CallOptions,
  ): Promise<readonly Uint8Array[]> {
    const args = { dom: this.ref, ncpumaps: vcpus, maplen: mapBytes, flags };
    const { cpumaps, num } = await this.#caller.call('DOMAIN_GET_VCPU_PIN_INFO', args, options);
    return Array.from({ length: num }, (_, i) => cpumaps.subarray(i * mapBytes, (i + 1) * mapBytes));
  }

  /** Pins a vCPU; bitmap low bit first; flags `DomainModificationImpact`. */
  pinVcpu(vcpu: number, cpumap: Uint8Array, flags: number, options?: CallOptions): Promise<void> {
    return this.#caller.call('DOMAIN_PIN_VCPU_FLAGS', { dom: this.ref, vcpu, cpumap, flags }, options);
  }

  /** Pins QEMU's own threads. */
  pinEmulator(cpumap: Uint8Array, flags: number, options?: CallOptions): Promise<void> {
    return this.#caller.call('DOMAIN_PIN_EMULATOR', { dom: this.ref, cpumap, flags }, options);
  }

  /** Starts to measure how quickly the guest dirties memory; read it with stats group DIRTYRATE. */
  startDirtyRateCalc(seconds: number, flags = 0, options?: CallOptions): Promise<void> {
    return this.#caller.call('DOMAIN_START_DIRTY_RATE_CALC', { dom: this.ref, seconds, flags }, options);
  }

  // Jobs and migration

  /** Progress of the job; flags `DomainGetJobStatsFlags`. */
  async getJobStats(flags = 0, options?: CallOptions): Promise<JobStats> {
    const ret = await this.#caller.call('DOMAIN_GET_JOB_STATS', { dom: this.ref, flags }, options);
    return { type: ret.type, params: new TypedParams(ret.params) };
  }

  /** Progress of the job in libvirt's older, shorter form. */
  getJobInfo(options?: CallOptions): Promise<wire.DomainGetJobInfoRet> {
    return this.#caller.call('DOMAIN_GET_JOB_INFO', { dom: this.ref }, options);
  }

  /** Cancels the job; flags `DomainAbortJobFlagsValues`. */
  abortJob(flags = 0, options?: CallOptions): Promise<void> {
    return flags === 0
      ? this.#caller.call('DOMAIN_ABORT_JOB', { dom: this.ref }, options)
      : this.#caller.call('DOMAIN_ABORT_JOB_FLAGS', { dom: this.ref, flags }, options);
  }

  /**
   * Peer-to-peer migration (flags must hold PEER2PEER of `DomainMigrateFlags`): the daemon connects to `uri` itself.
   * Answered when the migration is over, so give it a connection of its own.
   */
  async migrateToUri(
    uri: string,
    params: readonly TypedParam[],
    flags: number,
    options: CallOptions = UNLIMITED,
  ): Promise<void> {
    const args = { dom: this.ref, dconnuri: uri, params, cookie_in: new Uint8Array(0), flags };
    await this.#caller.call('DOMAIN_MIGRATE_PERFORM3_PARAMS', args, options);
  }

  /** Switches a running migration to post-copy. */
  migrateStartPostCopy(options?: CallOptions): Promise<void> {
    return this.#caller.call('DOMAIN_MIGRATE_START_POST_COPY', { dom: this.ref, flags: 0 }, options);
  }

  /** Longest pause at the end of a live migration. */
  migrateSetMaxDowntime(downtimeMs: bigint, options?: CallOptions): Promise<void> {
    const args = { dom: this.ref, downtime: downtimeMs, flags: 0 };
    return this.#caller.call('DOMAIN_MIGRATE_SET_MAX_DOWNTIME', args, options);
  }

  /** Bandwidth of a migration; flags `DomainMigrateMaxSpeedFlags`. */
  migrateSetMaxSpeed(mibPerSecond: bigint, flags = 0, options?: CallOptions): Promise<void> {
    const args = { dom: this.ref, bandwidth: mibPerSecond, flags };
    return this.#caller.call('DOMAIN_MIGRATE_SET_MAX_SPEED', args, options);
  }

  // Guest agent and monitor

  /**
   * Sends a JSON command to the guest agent.
   *
   * @param timeout seconds, or `DomainQemuAgentCommandTimeoutValues`: DEFAULT -1 is 5 s, BLOCK -2, NOWAIT 0.
   * @returns the agent's JSON text with its `return` member; null when it was not waited for.
   */
  async agentCommand(command: string, timeout = -1, options?: CallOptions): Promise<string | null> {
    const args = { dom: this.ref, cmd: command, timeout, flags: 0 };
    return (await this.#caller.call('QEMU_DOMAIN_AGENT_COMMAND', args, options)).result;
  }

  /** Sends a monitor command; flags `DomainQemuMonitorCommandFlags`. A QMP error comes back as text. */
  async monitorCommand(command: string, flags = 0, options?: CallOptions): Promise<string> {
    const args = { dom: this.ref, cmd: command, flags };
    return (await this.#caller.call('QEMU_DOMAIN_MONITOR_COMMAND', args, options)).result;
  }

  /** How long the daemon waits for the agent in calls that use it; `DomainAgentResponseTimeoutValues` or seconds. */
  async agentSetResponseTimeout(timeout: number, options?: CallOptions): Promise<void> {
    await this.#caller.call('DOMAIN_AGENT_SET_RESPONSE_TIMEOUT', { dom: this.ref, timeout, flags: 0 }, options);
  }

  /** What the agent knows of the guest; types `DomainGuestInfoTypes`, 0 = all it supports. */
  async getGuestInfo(types = 0, options?: CallOptions): Promise<TypedParams> {
    const ret = await this.#caller.call('DOMAIN_GET_GUEST_INFO', { dom: this.ref, types, flags: 0 }, options);
    return new TypedParams(ret.params);
  }

  /** Addresses of the guest's interfaces; source `DomainInterfaceAddressesSource`. */
  async interfaceAddresses(source: number, options?: CallOptions): Promise<readonly wire.DomainInterface[]> {
    const args = { dom: this.ref, source, flags: 0 };
    return (await this.#caller.call('DOMAIN_INTERFACE_ADDRESSES', args, options)).ifaces;
  }

  /** Freezes file systems (all, or those mounted there); returns how many. */
  async fsFreeze(mountpoints: readonly string[] = [], options?: CallOptions): Promise<number> {
    return (await this.#caller.call('DOMAIN_FSFREEZE', { dom: this.ref, mountpoints, flags: 0 }, options)).filesystems;
  }

  /** Thaws file systems; returns how many. */
  async fsThaw(mountpoints: readonly string[] = [], options?: CallOptions): Promise<number> {
    return (await this.#caller.call('DOMAIN_FSTHAW', { dom: this.ref, mountpoints, flags: 0 }, options)).filesystems;
  }

  /** Mounted file systems of the guest and the disks they are on. */
  async getFsInfo(options?: CallOptions): Promise<readonly wire.DomainFsinfo[]> {
    return (await this.#caller.call('DOMAIN_GET_FSINFO', { dom: this.ref, flags: 0 }, options)).info;
  }

  /** Sets the guest's clock; flags `DomainSetTimeFlags`. */
  setTime(seconds: bigint, nanoseconds: number, flags = 0, options?: CallOptions): Promise<void> {
    const args = { dom: this.ref, seconds, nseconds: nanoseconds, flags };
    return this.#caller.call('DOMAIN_SET_TIME', args, options);
  }

  /** Sets a user's password in the guest; flags `DomainSetUserPasswordFlags`. */
  setUserPassword(user: string, password: string, flags = 0, options?: CallOptions): Promise<void> {
    return this.#caller.call('DOMAIN_SET_USER_PASSWORD', { dom: this.ref, user, password, flags }, options);
  }

  /** SSH keys of a guest user. */
  async authorizedSshKeysGet(user: string, options?: CallOptions): Promise<readonly string[]> {
    const args = { dom: this.ref, user, flags: 0 };
    return (await this.#caller.call('DOMAIN_AUTHORIZED_SSH_KEYS_GET', args, options)).keys;
  }

  /** Sets SSH keys of a guest user; flags `DomainAuthorizedSSHKeysSetFlags`. */
  authorizedSshKeysSet(user: string, keys: readonly string[], flags = 0, options?: CallOptions): Promise<void> {
    return this.#caller.call('DOMAIN_AUTHORIZED_SSH_KEYS_SET', { dom: this.ref, user, keys, flags }, options);
  }

  // Backup, checkpoints, launch security

  /** Starts a backup; its end is a `jobCompleted` event. Flags `DomainBackupBeginFlags`. */
  backupBegin(backupXml: string, checkpointXml: string | null, flags = 0, options?: CallOptions): Promise<void> {
    const args = { dom: this.ref, backup_xml: backupXml, checkpoint_xml: checkpointXml, flags };
    return this.#caller.call('DOMAIN_BACKUP_BEGIN', args, options);
  }

  /** XML of the running backup. */
  async backupGetXmlDesc(options?: CallOptions): Promise<string> {
    return (await this.#caller.call('DOMAIN_BACKUP_GET_XML_DESC', { dom: this.ref, flags: 0 }, options)).xml;
  }

  /** Makes or redefines a checkpoint; flags `DomainCheckpointCreateFlags`. */
  async checkpointCreateXml(xml: string, flags = 0, options?: CallOptions): Promise<wire.DomainCheckpointRef> {
    const args = { dom: this.ref, xml_desc: xml, flags };
    return (await this.#caller.call('DOMAIN_CHECKPOINT_CREATE_XML', args, options)).checkpoint;
  }

  /** Finds a checkpoint; error NO_DOMAIN_CHECKPOINT when there is none. */
  async checkpointLookupByName(name: string, options?: CallOptions): Promise<wire.DomainCheckpointRef> {
    const args = { dom: this.ref, name, flags: 0 };
    return (await this.#caller.call('DOMAIN_CHECKPOINT_LOOKUP_BY_NAME', args, options)).checkpoint;
  }

  /** Deletes a checkpoint; flags `DomainCheckpointDeleteFlags`. */
  checkpointDelete(checkpoint: wire.DomainCheckpointRef, flags = 0, options?: CallOptions): Promise<void> {
    return this.#caller.call('DOMAIN_CHECKPOINT_DELETE', { checkpoint, flags }, options);
  }

  /** All checkpoints; flags `DomainCheckpointListFlags`. */
  async listAllCheckpoints(flags = 0, options?: CallOptions): Promise<readonly wire.DomainCheckpointRef[]> {
    const args = { dom: this.ref, need_results: 1, flags };
    return (await this.#caller.call('DOMAIN_LIST_ALL_CHECKPOINTS', args, options)).checkpoints;
  }

  /** SEV measurement and the like. */
  async getLaunchSecurityInfo(options?: CallOptions): Promise<TypedParams> {
    const args = { dom: this.ref, flags: 0 };
    return new TypedParams((await this.#caller.call('DOMAIN_GET_LAUNCH_SECURITY_INFO', args, options)).params);
  }

  /** Injects a launch secret. */
  setLaunchSecurityState(params: readonly TypedParam[], flags = 0, options?: CallOptions): Promise<void> {
    return this.#caller.call('DOMAIN_SET_LAUNCH_SECURITY_STATE', { dom: this.ref, params, flags }, options);
  }

  // Streams

  /** Picture of a screen; needs a video device in the domain. */
  async screenshot(screen = 0, options?: StreamOptions): Promise<Screenshot> {
    const args = { dom: this.ref, screen, flags: 0 };
    const { ret, stream } = await this.#caller.openStream('DOMAIN_SCREENSHOT', args, options);
    return { mime: ret.mime, data: await collectStream(stream) };
  }

  /** Both directions of a serial or console device; null is the first; flags `DomainConsoleFlags`. */
  async openConsole(device: string | null = null, flags = 0, options?: StreamOptions): Promise<Duplex> {
    const args = { dom: this.ref, dev_name: device, flags };
    return (await this.#caller.openStream('DOMAIN_OPEN_CONSOLE', args, options)).stream;
  }

  /** Both directions of a channel device; null is the first; flags `DomainChannelFlags`. */
  async openChannel(name: string | null = null, flags = 0, options?: StreamOptions): Promise<Duplex> {
    const args = { dom: this.ref, name, flags };
    return (await this.#caller.openStream('DOMAIN_OPEN_CHANNEL', args, options)).stream;
  }
}
