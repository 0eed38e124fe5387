import { addToIp, formatIp, isGlobalUnicast, networkOf, parseCidr, parseIp, prefixMask } from '@virtwire/host';
import { inPodBridgeName } from '@virtwire/vm-model';
import type { Network, Vmi, VmiInterface } from '@virtwire/vm-model';
import { LauncherError } from '../errors.ts';
import type { DhcpServerConfig } from './dhcp-server.ts';
import type { Dhcp6ServerConfig } from './dhcp6-server.ts';
import { parsePhaseOneFile } from './phase-one-file.ts';
import { searchWithSubdomain } from './resolv-conf.ts';
import type { ResolvConf } from './resolv-conf.ts';

const DEFAULT_RANGE = { 4: '10.0.2.0/24', 6: 'fd10:0:2::/120' } as const;

/** What a server's configuration is computed from. */
export interface DhcpFacts {
  readonly vmi: Vmi;
  readonly iface: VmiInterface;
  readonly network: Network;
  readonly podLink: string;
  /** Content of the file that the node agent wrote for a bridge interface. */
  readonly phaseOneFile: string | undefined;
  /** MTU of the pod's real link. */
  readonly mtu: number;
  readonly podAddresses: readonly string[];
  readonly bridgeMac: string;
  readonly resolvConf: ResolvConf;
  readonly hostname: string;
}

/** The servers of one interface, by IP version. */
export interface DhcpPlan {
  readonly v4?: DhcpServerConfig;
  readonly v6?: Dhcp6ServerConfig;
}

/** The servers that an interface needs: none of a family without an address to hand out. */
export function decideDhcp(facts: DhcpFacts): DhcpPlan {
  if (facts.iface.bridge !== undefined) return bridgeServer(facts);
  return facts.iface.masquerade === undefined ? {} : masqueradeServers(facts);
}

function common(
  facts: DhcpFacts,
): Pick<DhcpServerConfig, 'bridge' | 'nameservers' | 'search' | 'mtu' | 'hostname' | 'extra'> {
  // prettier-ignore
  const { vmi, iface, podLink, mtu, resolvConf, hostname } = facts;
  return {
    bridge: inPodBridgeName(podLink),
    nameservers: resolvConf.ipv4,
    search: searchWithSubdomain(resolvConf.search, vmi.spec.subdomain),
    mtu,
    hostname,
    extra: iface.dhcpOptions,
  };
}

/** The guest gets the pod's own address, by the same routes. */
function bridgeServer(facts: DhcpFacts): DhcpPlan {
  const { vmi, iface, podLink, phaseOneFile } = facts;
  if (phaseOneFile === undefined) {
    throw new LauncherError('NetworkFailed', `no DHCP file of the pod interface ${podLink}`);
  }
  const pod = parsePhaseOneFile(phaseOneFile);
  if (pod === undefined) return {};
  const index = (vmi.spec.domain.devices.interfaces ?? []).findIndex((i) => i.name === iface.name);
  const v4: DhcpServerConfig = {
    ...common(facts),
    serverAddress: `169.254.75.1${index}`,
    clientAddress: pod.clientAddress,
    clientMac: pod.clientMac,
    mask: pod.mask,
    gateway: pod.gateway,
    routes: pod.routes,
  };
  return { v4 };
}

/** The guest gets the second address of a private range; the first is its gateway, the bridge. */
function masqueradeServers(facts: DhcpFacts): DhcpPlan {
  const { network, podAddresses, resolvConf, bridgeMac } = facts;
  const has = (isIpv6: boolean): boolean => podAddresses.some((a) => a.includes(':') === isIpv6 && isGlobalUnicast(a));
  const plan: { v4?: DhcpServerConfig; v6?: Dhcp6ServerConfig } = {};
  if (has(false)) {
    const { gateway, guest, prefixLength } = rangeOf(nonEmpty(network.pod?.vmNetworkCIDR) ?? DEFAULT_RANGE[4]);
    plan.v4 = {
      ...common(facts),
      serverAddress: gateway,
      clientAddress: guest,
      clientMac: undefined,
      mask: prefixMask(prefixLength, 4),
      gateway,
      routes: [],
    };
  }
  if (has(true)) {
    const { guest } = rangeOf(nonEmpty(network.pod?.vmIPv6NetworkCIDR) ?? DEFAULT_RANGE[6]);
    plan.v6 = { bridge: common(facts).bridge, bridgeMac, clientAddress: guest, nameservers: resolvConf.ipv6 };
  }
  return plan;
}

function rangeOf(range: string): { readonly gateway: string; readonly guest: string; readonly prefixLength: number } {
  const cidr = parseCidr(range);
  const bytes = cidr === undefined ? undefined : parseIp(cidr.ip);
  if (cidr === undefined || bytes === undefined) {
    throw new LauncherError('NetworkFailed', `failed to parse VM CIDR: ${range}`);
  }
  const gateway = addToIp(networkOf(bytes, cidr.prefixLength), 1);
  return { gateway: formatIp(gateway), guest: formatIp(addToIp(gateway, 1)), prefixLength: cidr.prefixLength };
}

function nonEmpty(text: string | undefined): string | undefined {
  return text === '' ? undefined : text;
}
