/** A fact of the host, or the text of the failure to find it. */
export type Known<T> = { readonly value: T } | { readonly failure: string };

/** What sysfs says of one passed-through device. */
export interface GraceDeviceFacts {
  /** Vendor and device as sysfs spells them: `0x10de`, `0x2342`. */
  readonly identity: Known<{ readonly vendor: string; readonly device: string }>;
  readonly numaNode: Known<number>;
  /** Bytes of its 64-bit prefetchable BARs. */
  readonly barBytes: Known<bigint>;
  /** Generic Initiator nodes that name this device. */
  readonly initiatorNodes: Known<readonly number[]>;
}

/** What the conversion must know of a host for NVIDIA Grace IO virtualisation. */
export interface GraceHostFacts {
  readonly hasSmmuV3: Known<boolean>;
  /** By PCI address `0009:01:00.0`. */
  readonly devices: ReadonlyMap<string, GraceDeviceFacts>;
  /** All Generic Initiator nodes of the host. */
  readonly initiatorNodes: Known<readonly number[]>;
  /** Distance to each node, by node. */
  readonly distances: ReadonlyMap<number, Known<ReadonlyMap<number, number>>>;
}

/** Nothing is known of a host whose devices are not asked for. */
export const NO_GRACE_HOST: GraceHostFacts = {
  hasSmmuV3: { value: false },
  devices: new Map(),
  initiatorNodes: { value: [] },
  distances: new Map(),
};
