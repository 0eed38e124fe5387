import { parseIp, parseMac, prefixMask } from '@virtwire/host';
import type { Cidr } from '@virtwire/host';

/** What the launcher's DHCP server has to tell a guest that takes over the pod's address. */
export interface DhcpFacts {
  readonly address: Cidr;
  readonly mac: string;
  readonly gateway: string | undefined;
  readonly routes: readonly { readonly destination: Cidr | undefined; readonly gateway: string | undefined }[];
}

/** Fields of a netlink address that Go prints and nobody reads. */
const EMPTY_ADDRESS = {
  Label: '',
  Flags: 0,
  Scope: 0,
  Peer: null,
  Broadcast: '',
  PreferedLft: 0,
  ValidLft: 0,
  LinkIndex: 0,
} as const;

/** The same for a route, in Go's order; `Dst`, `Src` and `Gw` stand before the rest. */
const EMPTY_ROUTE_TAIL = {
  MultiPath: null,
  Protocol: 0,
  Priority: 0,
  Family: 0,
  Table: 0,
  Type: 0,
  Tos: 0,
  Flags: 0,
  MPLSDst: null,
  NewDst: null,
  Encap: null,
  Via: null,
  Realm: 0,
  MTU: 0,
  MTULock: false,
  Window: 0,
  Rtt: 0,
  RttVar: 0,
  Ssthresh: 0,
  Cwnd: 0,
  AdvMSS: 0,
  Reordering: 0,
  Hoplimit: 0,
  InitCwnd: 0,
  Features: 0,
  RtoMin: 0,
  RtoMinLock: false,
  InitRwnd: 0,
  QuickACK: 0,
  Congctl: '',
  FastOpenNoCookie: 0,
} as const;

/**
 * The file `vif-cache-<pod link>.json` that launchers of v1.0 to v1.9 read, as Go prints it.
 *
 * @param facts undefined when the pod link has no IPv4 address: the launcher then starts no DHCP server.
 * @source KubeVirt v1.9.0 pkg/network/cache/dhcpconfig.go
 */
export function renderDhcpFile(facts: DhcpFacts | undefined): string {
  const value = {
    Name: '',
    IP: facts === undefined ? EMPTY_ADDRESS : { ...netOf(facts.address), ...EMPTY_ADDRESS },
    IPv6: EMPTY_ADDRESS,
    MAC: facts === undefined ? null : parseMac(facts.mac).toString('base64'),
    AdvertisingIPAddr: '',
    AdvertisingIPv6Addr: '',
    Routes: facts === undefined || facts.routes.length === 0 ? null : facts.routes.map(routeOf),
    Mtu: 0,
    IPAMDisabled: facts === undefined,
    Gateway: facts?.gateway ?? '',
    Subdomain: '',
  };
  return JSON.stringify(value, undefined, 2);
}

function routeOf(route: DhcpFacts['routes'][number]): object {
  const { destination, gateway } = route;
  return {
    LinkIndex: 0,
    ILinkIndex: 0,
    Scope: 0,
    Dst: destination === undefined ? null : netOf(destination),
    Src: '',
    Gw: gateway ?? '',
    ...EMPTY_ROUTE_TAIL,
  };
}

function netOf(cidr: Cidr): { readonly IP: string; readonly Mask: string } {
  const bytes = parseIp(cidr.ip)?.length === 4 ? 4 : 16;
  return { IP: cidr.ip, Mask: prefixMask(cidr.prefixLength, bytes).toString('base64') };
}

/**
 * The file `interface-cache-<network>.json` that launchers of v1.0 to v1.6 read for the guest's MAC; without it they
 * make up one that their own DHCP server does not serve.
 *
 * @source KubeVirt v1.6.0 pkg/network/cache/domaininterface.go:63
 */
export function renderInterfaceFile(mac: string): string {
  const value = {
    XMLName: { Space: '', Local: '' },
    Address: null,
    Type: '',
    TrustGuestRxFilters: '',
    Source: { Network: '', Device: '', Bridge: '', Mode: '', Address: null },
    Target: null,
    Model: null,
    MAC: { MAC: mac },
    MTU: null,
    BandWidth: null,
    BootOrder: null,
    LinkState: null,
    FilterRef: null,
    Alias: null,
    Driver: null,
    Rom: null,
    ACPI: null,
    Backend: null,
    PortForward: null,
  };
  return JSON.stringify(value, undefined, 2);
}
