import { addToIp, formatIp, isGlobalUnicast, networkOf, parseCidr, parseIp, prefixMask } from '@virtwire/host';
import { inPodBridgeName } from '@virtwire/vm-model';
import type { Network, Vmi, VmiInterface } from '@virtwire/vm-model';
import { LauncherError } from '../errors.ts';
import type { DhcpServerConfig } from './dhcp-server.ts';
import { parsePhaseOneFile } from './phase-one-file.ts';
import { searchWithSubdomain } from './resolv-conf.ts';
import type { ResolvConf } from './resolv-conf.ts';

const DEFAULT_RANGE = '10.0.2.0/24';

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
  readonly resolvConf: ResolvConf;
  readonly hostname: string;
}

/** The server that an interface needs; undefined when there is no IPv4 address to hand out. */
export function decideDhcp(facts: DhcpFacts): DhcpServerConfig | undefined {
  if (facts.iface.bridge !== undefined) return bridgeServer(facts);
  return facts.iface.masquerade === undefined ? undefined : masqueradeServer(facts);
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
function bridgeServer(facts: DhcpFacts): DhcpServerConfig | undefined {
  const { vmi, iface, podLink, phaseOneFile } = facts;
  if (phaseOneFile === undefined) {
    throw new LauncherError('NetworkFailed', `no DHCP file of the pod interface ${podLink}`);
  }
  const pod = parsePhaseOneFile(phaseOneFile);
  if (pod === undefined) return undefined;
  const index = (vmi.spec.domain.devices.interfaces ?? []).findIndex((i) => i.name === iface.name);
  return {
    ...common(facts),
    serverAddress: `169.254.75.1${index}`,
    clientAddress: pod.clientAddress,
    clientMac: pod.clientMac,
    mask: pod.mask,
    gateway: pod.gateway,
    routes: pod.routes,
  };
}

/** The guest gets the second address of a private range; the first is its gateway, the bridge. */
function masqueradeServer(facts: DhcpFacts): DhcpServerConfig | undefined {
  if (!facts.podAddresses.some((a) => !a.includes(':') && isGlobalUnicast(a))) return undefined;
  const range = nonEmpty(facts.network.pod?.vmNetworkCIDR) ?? DEFAULT_RANGE;
  const cidr = parseCidr(range);
  const bytes = cidr === undefined ? undefined : parseIp(cidr.ip);
  if (cidr === undefined || bytes === undefined) {
    throw new LauncherError('NetworkFailed', `failed to parse VM CIDR: ${range}`);
  }
  const gateway = addToIp(networkOf(bytes, cidr.prefixLength), 1);
  return {
    ...common(facts),
    serverAddress: formatIp(gateway),
    clientAddress: formatIp(addToIp(gateway, 1)),
    clientMac: undefined,
    mask: prefixMask(cidr.prefixLength, 4),
    gateway: formatIp(gateway),
    routes: [],
  };
}

function nonEmpty(text: string | undefined): string | undefined {
  return text === '' ? undefined : text;
}
