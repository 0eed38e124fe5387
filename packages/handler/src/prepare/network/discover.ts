import { networkOf, parseCidr, parseIp } from '@virtwire/host';
import { HandlerError } from '../../errors.ts';
import type { Vmi } from '../../model.ts';
import { firstGlobal } from './addresses.ts';
import type { NetworkInterface } from './binding.ts';
import type { DhcpFacts } from './dhcp-file.ts';
import { podLinkNames } from './names.ts';
import { findInterface } from './state.ts';
import type { InterfaceState, PodNetwork } from './state.ts';

/** What is found out about one interface before anything changes. */
export interface Discovered {
  readonly network: string;
  readonly podLink: string;
  /** Global addresses of the pod link, at most one of a family, the preferred family first. */
  readonly podIps: readonly string[];
  /** For the bridge binding. Called once the addresses are stored, since it may fail. */
  readonly dhcp: (() => DiscoveredDhcp) | undefined;
}

/** What the DHCP file says; `facts` is undefined without an IPv4 address. */
interface DiscoveredDhcp {
  readonly facts: DhcpFacts | undefined;
  readonly mac: string | undefined;
}

/** What discovery reads. */
export interface DiscoverInput {
  readonly vmi: Vmi;
  readonly interfaces: readonly NetworkInterface[];
  readonly current: PodNetwork;
  /** The node agent's own address: its family comes first. */
  readonly ownPodIp: string | undefined;
}

/**
 * Finds addresses and routes of the pod links, one interface at a time: what was found before an interface that fails
 * is used.
 *
 * @throws {HandlerError} `Invalid`; such an error may go away, so the set-up is tried again.
 * @source KubeVirt v1.9.0 pkg/network/setup/netpod/discover.go:38
 */
export function* discover(input: DiscoverInput): Generator<Discovered> {
  const { vmi, interfaces, current } = input;
  const names = podLinkNames(vmi, interfaces.map((i) => i.network), current); // prettier-ignore
  for (const entry of interfaces) {
    if (entry.iface.state === 'absent' || entry.binding === 'sriov') continue;
    const podLink = names.get(entry.network.name) ?? '';
    const link = findInterface(current, podLink);
    if (link === undefined) {
      if (entry.binding === 'plugin') continue;
      throw new HandlerError('Invalid', `pod link (${podLink}) is missing`);
    }
    const isBridge = entry.binding === 'bridge';
    yield {
      network: entry.network.name,
      podLink,
      podIps: podIps(link, !isBridge, input.ownPodIp),
      dhcp: isBridge ? () => discoverDhcp(input, entry, link) : undefined,
    };
  }
}

/** With the bridge binding the guest cannot be reached by the pod's IPv6 address, so that is not told. */
function podIps(link: InterfaceState, withIpv6: boolean, ownPodIp: string | undefined): string[] {
  const v4 = firstGlobal(link.IPv4)?.IP;
  const v6 = withIpv6 ? firstGlobal(link.IPv6)?.IP : undefined;
  if (v4 === undefined || v6 === undefined) return [v4, v6].filter((ip) => ip !== undefined);
  if (ownPodIp === undefined || ownPodIp === '') throw new HandlerError('Invalid', 'MY_POD_IP doesnt exists');
  return ownPodIp.includes(':') ? [v6, v4] : [v4, v6];
}

function discoverDhcp(input: DiscoverInput, entry: NetworkInterface, link: InterfaceState): DiscoveredDhcp {
  const address = firstGlobal(link.IPv4);
  const specMac = nonEmpty(entry.iface.macAddress);
  const linkMac = nonEmpty(link['mac-address']);
  if (address === undefined) return { facts: undefined, mac: specMac ?? linkMac };
  const statusMac = nonEmpty(input.vmi.status?.interfaces?.find((i) => i.name === entry.iface.name)?.mac);
  const mac = specMac === undefined ? (statusMac ?? linkMac ?? '') : checkMac(specMac);
  const routes = ipv4Routes(input.current, link.name);
  const [first] = routes;
  if (first === undefined) {
    throw new HandlerError('Invalid', `no gateway address found in routes for ${link.name}`);
  }
  const own = parseIp(address.IP) ?? Buffer.alloc(4);
  const subnet = `${networkOf(own, address['prefix-length']).join('.')}/${address['prefix-length']}`;
  const facts: DhcpFacts = {
    address: { ip: address.IP, prefixLength: address['prefix-length'] },
    mac,
    gateway: first['next-hop-address'],
    routes: routes
      .filter((r) => r.destination !== subnet)
      .map((r) => ({
        destination: r.destination === '0.0.0.0/0' ? undefined : parseCidr(r.destination),
        gateway: r['next-hop-address'],
      })),
  };
  return { facts, mac };
}

type Routes = NonNullable<PodNetwork['routes']['running']>;

function ipv4Routes(current: PodNetwork, podLink: string): Routes {
  const all = current.routes.running ?? [];
  return all.filter((r) => r['next-hop-interface'] === podLink && !r.destination.includes(':'));
}

function checkMac(mac: string): string {
  const plain = mac.toLowerCase().replaceAll('-', ':');
  if (/^[0-9a-f]{2}(:[0-9a-f]{2}){5}$/.test(plain)) return plain;
  const dotted = /^([0-9a-f]{4})\.([0-9a-f]{4})\.([0-9a-f]{4})$/.exec(plain);
  if (dotted !== null) return (dotted.slice(1).join('').match(/../g) ?? []).join(':');
  throw new HandlerError('Invalid', `address ${mac}: invalid MAC address`);
}

function nonEmpty(text: string | undefined): string | undefined {
  return text === '' ? undefined : text;
}
