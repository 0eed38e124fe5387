import type { Int32, Uint } from '../int64.ts';

/** One entry of `spec.networks`; exactly one of pod, multus and resourceClaim is set. */
export interface Network {
  name: string;
  pod?: { vmNetworkCIDR?: string; vmIPv6NetworkCIDR?: string };
  multus?: { networkName: string; default?: boolean };
  resourceClaim?: { claimName?: string; requestName?: string };
}

/** One entry of `spec.domain.devices.interfaces`. */
export interface VmiInterface {
  name: string;
  model?: string;
  bridge?: object;
  masquerade?: object;
  sriov?: object;
  passt?: object;
  passtBinding?: object;
  /** Removed from current releases; still sent for old objects. */
  slirp?: object;
  macvtap?: object;
  binding?: { name: string };
  ports?: Port[];
  portRanges?: PortRange[];
  macAddress?: string;
  bootOrder?: Uint;
  pciAddress?: string;
  dhcpOptions?: DhcpOptions;
  tag?: string;
  acpiIndex?: number;
  state?: 'up' | 'down' | 'absent';
}

/** A port that masquerade forwards. */
export interface Port {
  name?: string;
  protocol?: string;
  port: Int32;
}

/** Ports in a row that masquerade forwards. */
export interface PortRange {
  name?: string;
  protocol?: string;
  start: Int32;
  end: Int32;
}

/** `dhcpOptions` of an interface. */
export interface DhcpOptions {
  bootFileName?: string;
  tftpServerName?: string;
  ntpServers?: string[];
  privateOptions?: { option: number; value: string }[];
}
