import { readSysctls } from '@virtwire/host';
import type { Link, LinkAddress, NetworkNamespace, Route, RouteSocket } from '@virtwire/host';
import type { FamilyState, InterfaceState, LinuxStack, PodNetwork, RouteState } from './state.ts';

const TABLE_MAIN = 254;

/** What the kernel says of a namespace. */
export interface NetworkFacts {
  readonly links: readonly Link[];
  readonly addresses: readonly LinkAddress[];
  readonly routes: readonly Route[];
  /** Of {@link STACK_SYSCTLS}, in that order. */
  readonly stack: readonly (string | undefined)[];
  /** `route_localnet` of each link, in the order of `links`. */
  readonly routeLocalnet: readonly (string | undefined)[];
}

/** Settings of the namespace as a whole that the state shows. */
export const STACK_SYSCTLS = [
  'net/ipv4/conf/all/arp_ignore',
  'net/ipv4/ip_forward',
  'net/ipv4/ping_group_range',
  'net/ipv4/ip_unprivileged_port_start',
  'net/ipv6/conf/all/forwarding',
] as const;

/** Reads the current network of a namespace; all of it is synchronous and takes about a millisecond. */
export function readPodNetwork(namespace: NetworkNamespace, socket: RouteSocket): PodNetwork {
  const links = socket.links();
  const paths = [...STACK_SYSCTLS, ...links.map((l) => `net/ipv4/conf/${l.name}/route_localnet`)];
  const values = readSysctls(namespace, paths);
  return buildPodNetwork({
    links,
    addresses: socket.addresses(),
    routes: socket.routes(),
    stack: values.slice(0, STACK_SYSCTLS.length),
    routeLocalnet: values.slice(STACK_SYSCTLS.length),
  });
}

/**
 * The nmstate-like form of what the kernel says. Routes without one link of their own (several next hops, blackholes)
 * are left out; KubeVirt's reader fails on them, so that such a pod can never start.
 *
 * @source KubeVirt v1.9.0 pkg/network/driver/nmstate/status.go:30
 */
export function buildPodNetwork(facts: NetworkFacts): PodNetwork {
  const { links, routes, stack } = facts;
  const names = new Map(links.map((l) => [l.index, l.name]));
  const running = routes.flatMap((route): RouteState[] => {
    const link = route.linkIndex === undefined ? undefined : names.get(route.linkIndex);
    if (link === undefined) return [];
    return [
      {
        destination: route.destination,
        'next-hop-interface': link,
        ...(route.gateway === undefined ? {} : { 'next-hop-address': route.gateway }),
        'table-id': TABLE_MAIN,
      },
    ];
  });
  return {
    interfaces: links.map((link, i) => buildInterface(link, facts, names, facts.routeLocalnet[i])),
    routes: running.length === 0 ? {} : { running },
    'linux-stack': buildStack(stack),
  };
}

function buildInterface(
  link: Link,
  facts: NetworkFacts,
  names: ReadonlyMap<number, string>,
  routeLocalnet: string | undefined,
): InterfaceState {
  const family = (version: 4 | 6): FamilyState => {
    const own = facts.addresses.filter((a) => a.linkIndex === link.index && a.family === version);
    if (own.length === 0) return { enabled: false };
    return { enabled: true, address: own.map((a) => ({ IP: a.ip, 'prefix-length': a.prefixLength })) };
  };
  const isLoopback = /^(00:)*00$/.test(link.mac);
  const controller = link.masterIndex === undefined ? undefined : names.get(link.masterIndex);
  return {
    name: link.name,
    index: link.index,
    type: typeOf(link),
    state: link.operationalState,
    ...(link.mac === '' || isLoopback ? {} : { 'mac-address': link.mac }),
    mtu: link.mtu,
    ...(controller === undefined ? {} : { controller }),
    IPv4: family(4),
    IPv6: family(6),
    'linux-stack': {
      'ip4-route-local-net': routeLocalnet === '1',
      'port-learning': link.learning ?? false,
    },
    Metadata: null,
  };
}

function typeOf(link: Link): string {
  if (link.tun !== undefined) return link.tun.isTap ? 'tap' : 'tuntap';
  return link.kind === '' ? 'device' : link.kind;
}

function buildStack(values: readonly (string | undefined)[]): LinuxStack {
  const [arpIgnore, forwarding, groups, portStart, forwarding6] = values;
  const [low = 0, high = 0] = (groups ?? '1 0').split(/\s+/).map(Number);
  return {
    ipv4: {
      'arp-ignore': Number(arpIgnore ?? 0),
      forwarding: forwarding === '1',
      'ping-group-range': [low, high],
      'unprivileged-port-start': Number(portStart ?? 1024),
    },
    ipv6: { forwarding: forwarding6 === '1' },
  };
}
