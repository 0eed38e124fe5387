import { addToIp, formatIp, networkOf, parseCidr, parseIp } from '@virtwire/host';
import { inPodBridgeName, renamedPodLink, tapDeviceName } from '@virtwire/vm-model';
import { HandlerError } from '../../errors.ts';
import { isNonRoot } from '../../model.ts';
import type { Vmi } from '../../model.ts';
import { firstGlobal } from './addresses.ts';
import { queueCount } from './binding.ts';
import type { NetworkInterface } from './binding.ts';
import { podLinkNames } from './names.ts';
import { findInterface } from './state.ts';
import type { DesiredNetwork, FamilyState, InterfaceState, LinuxStack, PodNetwork } from './state.ts';

const QEMU_ID = 107;
const MASQUERADE_MAC = '02:00:00:00:00:00';
const DEFAULT_CIDR = { 4: '10.0.2.0/24', 6: 'fd10:0:2::/120' } as const;

/** What the desired state is computed from. */
export interface ComposeInput {
  readonly vmi: Vmi;
  readonly interfaces: readonly NetworkInterface[];
  readonly current: PodNetwork;
  readonly launcherPid: number;
}

/** The desired state of one interface's links, and what it asks of the namespace as a whole. */
interface Part {
  readonly interfaces: readonly InterfaceState[];
  readonly stack?: LinuxStack;
}

/**
 * What the pod's network should look like for these interfaces, those that are finished already included.
 *
 * @throws {HandlerError} `Invalid` for a missing pod link or a bad range of the VM network.
 * @source KubeVirt v1.9.0 pkg/network/setup/netpod/netpod.go:226
 */
export function composeDesired(input: ComposeInput): DesiredNetwork {
  const { vmi, interfaces, current } = input;
  const names = podLinkNames(vmi, interfaces.map((i) => i.network), current); // prettier-ignore
  const parts = interfaces.map((entry, index): Part => {
    const podLink = names.get(entry.network.name) ?? '';
    const place: Place = { ...input, ...entry, podLink, index };
    switch (entry.binding) {
      case 'bridge':
        return entry.iface.state === 'absent' ? removedBridge(place) : bridge(place, true);
      case 'managedTap':
        return bridge(place, false);
      case 'masquerade':
        return masquerade(place);
      case 'passt':
        return { interfaces: [], stack: PASST_STACK };
      case 'plugin':
      case 'sriov':
        return { interfaces: [] };
    }
  });
  const links = parts.flatMap((p) => p.interfaces);
  return { ...(links.length === 0 ? {} : { interfaces: links }), 'linux-stack': mergeStacks(parts) };
}

interface Place extends ComposeInput, NetworkInterface {
  readonly podLink: string;
  readonly index: number;
}

const PASST_STACK: LinuxStack = {
  ipv4: { 'ping-group-range': [QEMU_ID, QEMU_ID], 'unprivileged-port-start': 0 },
  ipv6: {},
};

function mergeStacks(parts: readonly Part[]): LinuxStack {
  const ipv4 = Object.assign({}, ...parts.map((p) => p.stack?.ipv4 ?? {})) as LinuxStack['ipv4'];
  const ipv6 = Object.assign({}, ...parts.map((p) => p.stack?.ipv6 ?? {})) as LinuxStack['ipv6'];
  const order = ['arp-ignore', 'forwarding', 'ping-group-range', 'unprivileged-port-start'] as const;
  const sorted = order.flatMap((key) => (ipv4[key] === undefined ? [] : [[key, ipv4[key]] as const]));
  return { ipv4: Object.fromEntries(sorted), ipv6 };
}

/** The pod link; after an earlier set-up it has the `-nic` name. */
function podLinkState(place: Place): InterfaceState {
  const { current, podLink } = place;
  const found = findInterface(current, renamedPodLink(podLink)) ?? findInterface(current, podLink);
  if (found === undefined) throw new HandlerError('Invalid', `pod link (${podLink}) is missing`);
  return found;
}

function tap(place: Place, fields: { readonly mtu?: number; readonly state: string }): InterfaceState {
  const { vmi, network, iface, podLink, launcherPid } = place;
  const owner = isNonRoot(vmi) ? QEMU_ID : 0;
  const queues = queueCount(vmi, iface);
  return {
    name: tapDeviceName(podLink, network),
    type: 'tap',
    state: fields.state,
    ...(fields.mtu === undefined ? {} : { mtu: fields.mtu }),
    controller: inPodBridgeName(podLink),
    tap: { ...(queues === 0 ? {} : { queues }), ...(owner === 0 ? {} : { UID: owner, GID: owner }) },
    IPv4: {},
    IPv6: {},
    'linux-stack': {},
    Metadata: { Pid: launcherPid, NetworkName: network.name },
  };
}

/** The guest takes the pod's address: pod link and tap on a bridge, a dummy keeps name and address for others to see. */
function bridge(place: Place, withAddress: boolean): Part {
  const { current, podLink, network, index } = place;
  const nic = podLinkState(place);
  // On a second pass the addresses are on the dummy, which bears the pod link's name.
  const holder = findInterface(current, podLink) ?? nic;
  const hasIpv4 = firstGlobal(holder.IPv4) !== undefined;
  const metadata = { Pid: 0, NetworkName: network.name };
  const address = { enabled: true, address: [{ IP: `169.254.75.1${index}`, 'prefix-length': 32 }] };
  const mtu = nic.mtu === undefined ? {} : { mtu: nic.mtu };
  const mac = holder['mac-address'];
  const links: InterfaceState[] = [
    {
      name: inPodBridgeName(podLink),
      type: 'bridge',
      state: 'up',
      IPv4: withAddress && hasIpv4 ? address : {},
      IPv6: {},
      'linux-stack': {},
      Metadata: metadata,
    },
    {
      name: renamedPodLink(podLink),
      ...(nic.index === undefined ? {} : { index: nic.index }),
      state: 'up',
      'copy-mac-from': inPodBridgeName(podLink),
      controller: inPodBridgeName(podLink),
      IPv4: { enabled: false },
      IPv6: { enabled: false },
      'linux-stack': { 'port-learning': false },
      Metadata: metadata,
    },
    tap(place, { ...mtu, state: 'up' }),
    {
      name: podLink,
      type: 'dummy',
      ...(mac === undefined ? {} : { 'mac-address': mac }),
      ...mtu,
      IPv4: holder.IPv4,
      IPv6: holder.IPv6,
      'linux-stack': {},
      Metadata: metadata,
    },
  ];
  return { interfaces: links, ...(hasIpv4 ? { stack: { ipv4: { 'arp-ignore': 1 }, ipv6: {} } } : {}) };
}

/** What an unplugged interface leaves behind; the pod link itself is its CNI plugin's, and may be gone. */
function removedBridge(place: Place): Part {
  const { podLink, network, current } = place;
  const nic = findInterface(current, renamedPodLink(podLink)) ?? findInterface(current, podLink);
  const mtu = nic?.mtu === undefined ? {} : { mtu: nic.mtu };
  const mac = nic?.['mac-address'];
  const metadata = { Pid: 0, NetworkName: network.name };
  const rest = { 'linux-stack': {}, Metadata: metadata };
  return {
    interfaces: [
      { name: inPodBridgeName(podLink), type: 'bridge', state: 'absent', IPv4: {}, IPv6: {}, ...rest },
      tap(place, { ...mtu, state: 'absent' }),
      {
        name: podLink,
        type: 'dummy',
        state: 'absent',
        ...(mac === undefined ? {} : { 'mac-address': mac }),
        ...mtu,
        IPv4: nic?.IPv4 ?? {},
        IPv6: nic?.IPv6 ?? {},
        ...rest,
      },
    ],
  };
}

/** The guest has a private address behind the pod's: a bridge that is the guest's gateway, and rules (masquerade.ts). */
function masquerade(place: Place): Part {
  const { podLink, network } = place;
  const nic = podLinkState(place);
  const family = (version: 4 | 6, state: FamilyState): FamilyState => {
    if (firstGlobal(state) === undefined) return { enabled: false };
    const given = version === 4 ? network.pod?.vmNetworkCIDR : network.pod?.vmIPv6NetworkCIDR;
    return { enabled: true, address: [gatewayOf(given === undefined || given === '' ? DEFAULT_CIDR[version] : given)] };
  };
  const mtu = nic.mtu === undefined ? {} : { mtu: nic.mtu };
  const [IPv4, IPv6] = [family(4, nic.IPv4), family(6, nic.IPv6)];
  return {
    interfaces: [
      {
        name: inPodBridgeName(podLink),
        type: 'bridge',
        state: 'up',
        'mac-address': MASQUERADE_MAC,
        ...mtu,
        IPv4,
        IPv6,
        'linux-stack': IPv4.enabled === true ? { 'ip4-route-local-net': true } : {},
        Metadata: { Pid: 0, NetworkName: network.name },
      },
      tap(place, { ...mtu, state: 'up' }),
    ],
    stack: {
      ipv4: IPv4.enabled === true ? { forwarding: true } : {},
      ipv6: IPv6.enabled === true ? { forwarding: true } : {},
    },
  };
}

/** First host address of a range: the guest's gateway. The guest itself gets the next one. */
function gatewayOf(range: string): { IP: string; 'prefix-length': number } {
  const cidr = parseCidr(range);
  const bytes = cidr === undefined ? undefined : parseIp(cidr.ip);
  if (cidr === undefined || bytes === undefined) {
    throw new HandlerError('Invalid', `failed to parse VM CIDR: ${range}, invalid CIDR address: ${range}`);
  }
  if (cidr.prefixLength > bytes.length * 8 - 2) {
    throw new HandlerError('Invalid', `VM CIDR subnet is too small, at least 2 host addresses are required: ${range}`);
  }
  const first = addToIp(networkOf(bytes, cidr.prefixLength), 1);
  return { IP: formatIp(first), 'prefix-length': cidr.prefixLength };
}
