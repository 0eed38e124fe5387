import type { Domain, DomainInterface, Vmi, VmiInterfaceStatus } from '../model.ts';
import type { PodInterface } from '../prepare/parts.ts';

const MULTUS = 'multus-status';
const DOMAIN = 'domain';
const GUEST_AGENT = 'guest-agent';
const MAX_GUEST_ONLY = 10;
const SRIOV_ALIAS = 'sriov-';

type AgentInterface = NonNullable<Domain['Status']['Interfaces']>[number];

function withoutUserPrefix(alias: string): string {
  return alias.startsWith('ua-') ? alias.slice(3) : alias;
}

function sourcesOf(status: VmiInterfaceStatus): readonly string[] {
  return (status.infoSource ?? '').split(', ').filter((source) => source !== '');
}

function fromDomain(iface: DomainInterface): VmiInterfaceStatus {
  const queues = iface.Driver?.Queues ?? 0;
  const linkState = iface.LinkState?.State ?? '';
  return {
    name: withoutUserPrefix(iface.Alias?.Name ?? ''),
    mac: iface.MAC?.MAC ?? '',
    infoSource: DOMAIN,
    queueCount: queues === 0 ? 1 : queues,
    linkState: linkState === '' ? 'up' : linkState,
  };
}

function sriovInterfaces(vmi: Vmi, domain: Domain): VmiInterfaceStatus[] {
  const aliases = (domain.Spec.Devices.HostDevices ?? []).map((device) => withoutUserPrefix(device.Alias?.Name ?? ''));
  return aliases
    .filter((alias) => alias.startsWith(SRIOV_ALIAS))
    .map((alias) => {
      const name = alias.slice(SRIOV_ALIAS.length);
      const mac = specInterface(vmi, name)?.macAddress;
      return { name, infoSource: DOMAIN, ...(mac === undefined ? {} : { mac }) };
    });
}

function specInterface(vmi: Vmi, name: string | undefined) {
  return (vmi.spec.domain.devices.interfaces ?? []).find((iface) => iface.name === name);
}

function withPodAddresses(
  vmi: Vmi,
  status: VmiInterfaceStatus,
  podInterfaces: ReadonlyMap<string, PodInterface>,
): VmiInterfaceStatus {
  if (specInterface(vmi, status.name) === undefined) return status;
  const pod = podInterfaces.get(status.name ?? '');
  return withAddresses(status, pod?.podIPs ?? [], pod?.podIP);
}

/** Sets both address fields; empty ones are left out, as Go's omitempty does. */
function withAddresses(
  status: VmiInterfaceStatus,
  addresses: readonly string[],
  first = addresses[0],
): VmiInterfaceStatus {
  const result = { ...status };
  delete result.ipAddress;
  delete result.ipAddresses;
  if (first !== undefined && first !== '') result.ipAddress = first;
  if (addresses.length > 0) result.ipAddresses = [...addresses];
  return result;
}

const isIpv6 = (address: string): boolean => address.includes(':');

function isLinkLocal(address: string): boolean {
  return isIpv6(address) ? /^fe[89ab][0-9a-f]:/i.test(address) : address.startsWith('169.254.');
}

function mergeFamily(known: readonly string[], reported: readonly string[]): readonly string[] {
  return known.length === 0 || reported.length === 0 ? reported : known;
}

function withAgentData(status: VmiInterfaceStatus, agent: AgentInterface, dropsLinkLocal: boolean): VmiInterfaceStatus {
  const reported = (agent.IPs ?? []).filter((address) => !dropsLinkLocal || !isLinkLocal(address));
  const known = status.ipAddresses ?? [];
  const merged = [
    ...mergeFamily(
      known.filter((a) => !isIpv6(a)),
      reported.filter((a) => !isIpv6(a)),
    ),
    ...mergeFamily(known.filter(isIpv6), reported.filter(isIpv6)),
  ];
  const result = withAddresses(status, merged);
  delete result.interfaceName;
  const interfaceName = agent.InterfaceName ?? '';
  if (interfaceName === '') return result;
  return { ...result, interfaceName, infoSource: `${DOMAIN}, ${GUEST_AGENT}` };
}

function guestOnly(agent: AgentInterface): VmiInterfaceStatus {
  return {
    ...(agent.Mac ? { mac: agent.Mac } : {}),
    ...(agent.Ip ? { ipAddress: agent.Ip } : {}),
    ...((agent.IPs ?? []).length === 0 ? {} : { ipAddresses: [...(agent.IPs ?? [])] }),
    ...(agent.InterfaceName ? { interfaceName: agent.InterfaceName } : {}),
    infoSource: GUEST_AGENT,
  };
}

function mergeAgent(vmi: Vmi, domain: Domain, statuses: readonly VmiInterfaceStatus[]): VmiInterfaceStatus[] {
  const merged = [...statuses];
  let extra = 0;
  for (const agent of domain.Status.Interfaces ?? []) {
    const at = merged.findIndex((status) => status.mac !== undefined && status.mac === agent.Mac);
    const found = merged[at];
    if (found !== undefined) {
      const isMasquerade = specInterface(vmi, found.name)?.masquerade !== undefined;
      merged[at] = withAgentData(found, agent, isMasquerade);
    } else if (extra < MAX_GUEST_ONLY) {
      merged.push(guestOnly(agent));
      extra += 1;
    }
  }
  return merged;
}

function podNetworkName(vmi: Vmi): string | undefined {
  return (vmi.spec.networks ?? []).find((network) => network.pod !== undefined)?.name;
}

/** The pod network's interface stands first; one that vanished keeps its place by its name. */
function primaryFirst(vmi: Vmi, statuses: VmiInterfaceStatus[]): VmiInterfaceStatus[] {
  const name = podNetworkName(vmi);
  if (name === undefined) return statuses;
  const primary = statuses.find((status) => status.name === name);
  const others = statuses.filter((status) => status !== primary);
  if (primary !== undefined) return [primary, ...others];
  const wasThere = (vmi.status?.interfaces ?? []).some((status) => status.name === name);
  return wasThere ? [{ name }, ...others] : statuses;
}

function withMultus(vmi: Vmi, statuses: readonly VmiInterfaceStatus[]): VmiInterfaceStatus[] {
  const result = [...statuses];
  for (const old of vmi.status?.interfaces ?? []) {
    if (!old.name || !sourcesOf(old).includes(MULTUS)) continue;
    const at = result.findIndex((status) => status.name === old.name);
    const found = result[at];
    if (found !== undefined) {
      result[at] = { ...found, infoSource: [...new Set([...sourcesOf(found), MULTUS])].join(', ') };
    } else if (specInterface(vmi, old.name) !== undefined) {
      result.push({ name: old.name, infoSource: MULTUS });
    }
  }
  return result;
}

function withPodInterfaceNames(vmi: Vmi, statuses: readonly VmiInterfaceStatus[]): VmiInterfaceStatus[] {
  const names = new Map((vmi.status?.interfaces ?? []).map((old) => [old.name ?? '', old.podInterfaceName]));
  return statuses.map((status) => {
    const podInterfaceName = status.name ? names.get(status.name) : undefined;
    return podInterfaceName === undefined ? status : { ...status, podInterfaceName };
  });
}

/**
 * `status.interfaces` from the domain, the pod's network state and the guest agent.
 *
 * A domain that is absent tells nothing, so the list stays as it was.
 *
 * @source KubeVirt v1.9.0 pkg/network/setup/netstat.go:92
 */
export function interfaceStatuses(
  vmi: Vmi,
  domain: Domain | undefined,
  podInterfaces: ReadonlyMap<string, PodInterface>,
): VmiInterfaceStatus[] | undefined {
  if (domain === undefined) return vmi.status?.interfaces;
  const found = [...(domain.Spec.Devices.Interfaces ?? []).map(fromDomain), ...sriovInterfaces(vmi, domain)];
  const addressed = found.map((status) => withPodAddresses(vmi, status, podInterfaces));
  const merged = primaryFirst(vmi, mergeAgent(vmi, domain, addressed));
  const result = withPodInterfaceNames(vmi, withMultus(vmi, merged));
  return result.length === 0 ? undefined : result;
}
