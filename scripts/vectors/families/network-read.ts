import { buildPodNetwork, STACK_SYSCTLS } from '@virtwire/handler/testing';
import type { Link, LinkAddress, OperationalState, Route } from '@virtwire/host';
import type { Files } from '../../testdata/bundle.ts';
import { diffJson, diffKeyOrder } from '../compare.ts';
import { caseNames, type CaseResult, runCase } from '../family.ts';

interface IpLink {
  readonly ifindex: number;
  readonly ifname: string;
  readonly flags: readonly string[];
  readonly mtu: number;
  readonly operstate: string;
  readonly link_type: string;
  readonly address?: string;
  readonly master?: string;
  readonly linkinfo?: {
    readonly info_kind?: string;
    readonly info_data?: { readonly type?: string };
    readonly info_slave_data?: { readonly learning?: boolean };
  };
}

interface IpAddress {
  readonly ifindex: number;
  readonly addr_info: readonly {
    readonly family: string;
    readonly local: string;
    readonly address?: string;
    readonly prefixlen: number;
  }[];
}

interface IpRoute {
  readonly dst: string;
  readonly type?: string;
  readonly gateway?: string;
  readonly dev?: string;
}

interface Input {
  readonly link: readonly IpLink[];
  readonly addr: readonly IpAddress[];
  readonly route: readonly IpRoute[];
  readonly route6: readonly IpRoute[];
  readonly sysctl: Readonly<Record<string, string>>;
}

/**
 * The state from what iproute2 shows; equal is the JSON with its key order. Where Go's reader fails because a route has
 * no device of its own, ours leaves the route out: the case passes if the state is there without it.
 */
export async function* runNetworkRead(files: Files): AsyncIterable<CaseResult> {
  for (const name of caseNames(files)) {
    const input = files.json(`${name}/input.json`) as Input;
    const output = files.json(`${name}/output.json`) as { readonly status?: unknown; readonly error?: string };
    yield await runCase(name, () => {
      const state = stateOf(input);
      if (output.status !== undefined)
        return [...diffJson(output.status, state), ...diffKeyOrder(output.status, state)];
      const shown = (state.routes.running ?? []).map((r) => r['next-hop-interface']);
      return diffJson([], shown.filter((link) => link === ''), 'routes without a link'); // prettier-ignore
    });
  }
}

function stateOf(input: Input): ReturnType<typeof buildPodNetwork> {
  const links = input.link.map((link) => linkOf(link, input.link));
  const index = new Map(input.link.map((l) => [l.ifname, l.ifindex]));
  return buildPodNetwork({
    links,
    addresses: input.addr.flatMap(addressesOf),
    routes: [...input.route.map((r) => routeOf(r, 4, index)), ...input.route6.map((r) => routeOf(r, 6, index))],
    stack: STACK_SYSCTLS.map((path) => input.sysctl[path]),
    routeLocalnet: links.map((l) => input.sysctl[`net/ipv4/conf/${l.name}/route_localnet`]),
  });
}

function linkOf(link: IpLink, all: readonly IpLink[]): Link {
  const kind = link.linkinfo?.info_kind ?? '';
  const state = link.operstate.toLowerCase();
  return {
    index: link.ifindex,
    name: link.ifname,
    kind,
    isUp: link.flags.includes('UP'),
    operationalState: (state === 'lowerlayerdown' ? 'lower-layer-down' : state) as OperationalState,
    mac: link.link_type === 'ether' || link.link_type === 'loopback' ? (link.address ?? '') : '',
    mtu: link.mtu,
    masterIndex: all.find((l) => l.ifname === link.master)?.ifindex,
    learning: link.linkinfo?.info_slave_data?.learning,
    tun:
      kind === 'tun' ? { isTap: link.linkinfo?.info_data?.type === 'tap', uid: undefined, gid: undefined } : undefined,
  };
}

function addressesOf(entry: IpAddress): LinkAddress[] {
  return entry.addr_info.map(({ family, local, address, prefixlen }) => ({
    linkIndex: entry.ifindex,
    family: family === 'inet' ? 4 : 6,
    ip: local,
    prefixLength: address === undefined ? prefixlen : family === 'inet' ? 32 : 128,
  }));
}

function routeOf(route: IpRoute, family: 4 | 6, index: ReadonlyMap<string, number>): Route {
  const any = family === 4 ? '0.0.0.0/0' : '::/0';
  const full = family === 4 ? 32 : 128;
  const destination =
    route.dst === 'default' ? any : route.dst.includes('/') ? route.dst : `${route.dst}/${String(full)}`;
  return {
    family,
    isUnicast: (route.type ?? 'unicast') === 'unicast',
    destination,
    gateway: route.gateway,
    linkIndex: route.dev === undefined ? undefined : index.get(route.dev),
  };
}
