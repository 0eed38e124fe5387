import type { Vmi } from '../model.ts';
import type { HookPoint } from '../vmi/steps.ts';

/** The launcher process as found through its command socket. */
export interface Isolation {
  readonly pid: number;
  readonly ppid: number;
  /** `/proc/<pid>/root`. */
  readonly rootPath: string;
}

/** Container disks and the kernel-boot container. */
export interface ContainerDiskPart {
  /** False while a disk is not there yet. @throws after a minute of waiting. */
  ready(vmi: Vmi, notInitializedSinceMs: number): Promise<boolean>;
  mountAndVerify(vmi: Vmi): Promise<void>;
  /** Idempotent. */
  unmount(vmi: Vmi): Promise<void>;
}

/** Volumes that come and go while the VM runs. */
export interface HotplugPart {
  /** `waiting` = not there yet, try again in a second. @throws an ENOENT error for a volume that cannot be found. */
  mount(vmi: Vmi): Promise<'mounted' | 'waiting'>;
  unmount(vmi: Vmi): Promise<void>;
  unmountAll(vmi: Vmi): Promise<void>;
  isMounted(vmi: Vmi, volume: string): Promise<boolean>;
}

/** Addresses of one pod interface, from the state file that network set-up leaves. */
export interface PodInterface {
  readonly podIP: string;
  readonly podIPs: readonly string[];
}

/** Pod network, phase 1. */
export interface NetworkPart {
  /**
   * Idempotent, one call with the networks in the order of the interfaces.
   *
   * @throws an error with code `CriticalNetwork` in its chain when trying again makes no sense.
   */
  setUp(vmi: Vmi, networks: readonly string[], launcher: Isolation): Promise<void>;
  tearDown(vmi: Vmi): Promise<void>;
  /** Pod-side addresses of an interface; undefined when nothing is recorded. */
  podInterface(vmi: Vmi, interfaceName: string): Promise<PodInterface | undefined>;
}

/** Ownership of device nodes and files below the launcher's root. */
export interface DevicePart {
  /** @throws an error with code `CriticalNetwork` when tun or vhost-net cannot be prepared. */
  prepare(vmi: Vmi, launcher: Isolation): Promise<void>;
}

/** Tells guests behind masquerade of their IPv6 gateway, which DHCPv6 cannot. */
export interface RouterPart {
  /** True while the gateway of a VM is told. */
  isServing(uid: string): boolean;
  /** Starts for each masquerade interface whose bridge has an IPv6 address; without one there is nothing to tell. */
  start(vmi: Vmi, launcher: Isolation): void;
  /** Idempotent. */
  stop(uid: string): void;
}

/** What a node offers only with features that come in releases of their own; an absent one is not asked for. */
export interface OptionalParts {
  readonly hotplug?: HotplugPart;
  readonly memlock?: { adjust(vmi: Vmi, launcher: Isolation): Promise<void> };
  readonly cgroup?: { open(vmi: Vmi): Promise<void> };
  readonly cpus?: {
    isolateEmulator(vmi: Vmi, cpuSet: string | undefined): Promise<void>;
    makeRealtime(vmi: Vmi): Promise<void>;
    affinePit(vmi: Vmi): Promise<void>;
  };
  readonly routers?: RouterPart;
  readonly downwardMetrics?: { start(vmi: Vmi, launcher: Isolation): Promise<void>; stop(vmi: Vmi): void };
  readonly migrationProxies?: { stopTarget(uid: string): void; stopSource(uid: string): void };
  readonly hooks?: { run(point: HookPoint, vmi: Vmi): Promise<void> };
}

/** Everything that the VM controller asks of the node. */
export interface NodeParts extends OptionalParts {
  readonly containerDisks: ContainerDiskPart;
  readonly network: NetworkPart;
  readonly devices: DevicePart;
  /** Finds the process behind a command socket by its peer credentials. */
  detectIsolation(socketFile: string): Promise<Isolation>;
  /** `none` without SELinux, else the context of the launcher's root. */
  selinuxContext(vmi: Vmi): Promise<string>;
  /** Size of a file below the launcher's root, in bytes. */
  fileSize(launcher: Isolation, path: string): Promise<number>;
}
