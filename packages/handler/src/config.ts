/** Settings of one handler process; paths are as this process sees them. */
export interface HandlerConfig {
  /** Name of the node; VMIs with this name in `kubevirt.io/nodeName` are ours. */
  readonly nodeName: string;
  /** Holds the notify socket; launchers see the same path inside their pod. Default `/var/run/kubevirt`. */
  readonly shareDir: string;
  /** Holds ghost records, mount state and the network cache. Default `/var/run/kubevirt-private`. */
  readonly privateDir: string;
  /** Short path of the kubelet's pods directory, for sockets. Default `/pods`. */
  readonly podsDir: string;
  /** Command socket dead-time before a domain is declared gone. Default 30 s. */
  readonly watchdogTimeoutMs: number;
  /** Period of the best-effort domain resync. Default 300 s. */
  readonly domainResyncPeriodMs: number;
  /**
   * VMs that are worked on at a time. Default 64: a worker costs nothing while it waits for a launcher, and launchers
   * that hang must not hold up the others (KubeVirt's is 10).
   */
  readonly workers: number;
  /** Unix socket or TCP address (`host:port`) that answers `/healthz`; undefined = none. */
  readonly health: string | undefined;
  /** The handler's own address; its family is named first in the network state. */
  readonly ownPodIp: string | undefined;
  /** Name of the CPU that host-model stands for; empty when it is not known. */
  readonly hostCpuModel: string;
}

/** KubeVirt's defaults. */
export const DEFAULT_HANDLER_CONFIG: Omit<HandlerConfig, 'nodeName'> = {
  shareDir: '/var/run/kubevirt',
  privateDir: '/var/run/kubevirt-private',
  podsDir: '/pods',
  watchdogTimeoutMs: 30_000,
  domainResyncPeriodMs: 300_000,
  workers: 64,
  health: undefined,
  ownPodIp: undefined,
  hostCpuModel: '',
};
