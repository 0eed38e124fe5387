/** An address in the nmstate-like form; keys are those that KubeVirt logs. */
export interface NetworkAddress {
  readonly IP: string;
  readonly 'prefix-length': number;
}

/** One family of a link. An empty object wants no address and says nothing of the family. */
export interface FamilyState {
  readonly enabled?: boolean;
  readonly address?: readonly NetworkAddress[];
}

/** One link, as it is or as it should be. Key order is that of KubeVirt's log line. */
export interface InterfaceState {
  readonly name: string;
  readonly index?: number;
  readonly type?: string;
  readonly state?: string;
  readonly 'mac-address'?: string;
  readonly 'copy-mac-from'?: string;
  readonly mtu?: number;
  readonly controller?: string;
  /** An owner of 0 is left out. */
  readonly tap?: { readonly queues?: number; readonly UID?: number; readonly GID?: number };
  readonly IPv4: FamilyState;
  readonly IPv6: FamilyState;
  readonly 'linux-stack': { readonly 'ip4-route-local-net'?: boolean; readonly 'port-learning'?: boolean };
  readonly Metadata: { readonly Pid: number; readonly NetworkName: string } | null;
}

/** One route of the main table. */
export interface RouteState {
  readonly destination: string;
  readonly 'next-hop-interface': string;
  readonly 'next-hop-address'?: string;
  readonly 'table-id': number;
}

/** Settings of the namespace as a whole. */
export interface LinuxStack {
  readonly ipv4: {
    readonly 'arp-ignore'?: number;
    readonly forwarding?: boolean;
    readonly 'ping-group-range'?: readonly [number, number];
    readonly 'unprivileged-port-start'?: number;
  };
  readonly ipv6: { readonly forwarding?: boolean };
}

/** The network of a pod: links, routes, settings. @source KubeVirt v1.9.0 pkg/network/driver/nmstate */
export interface PodNetwork {
  readonly interfaces: readonly InterfaceState[];
  readonly routes: { readonly running?: readonly RouteState[] };
  readonly 'linux-stack': LinuxStack;
}

/** What a pod's network should become; links that are not named stay as they are. */
export interface DesiredNetwork {
  readonly interfaces?: readonly InterfaceState[];
  readonly 'linux-stack': LinuxStack;
}

/** The link of that name. */
export function findInterface(network: PodNetwork, name: string): InterfaceState | undefined {
  return network.interfaces.find((i) => i.name === name);
}
