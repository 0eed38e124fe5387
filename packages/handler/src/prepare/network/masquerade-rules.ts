import { addToIp, formatIp, parseIp } from '@virtwire/host';
import { inPodBridgeName } from '@virtwire/vm-model';
import type { Port } from '@virtwire/vm-model';
import { HandlerError } from '../../errors.ts';
import type { Vmi, VmiInterface } from '../../model.ts';
import { firstGlobal } from './addresses.ts';
import type { NetworkInterface } from './binding.ts';
import { podLinkNames } from './names.ts';
import { findInterface } from './state.ts';
import type { DesiredNetwork, FamilyState, PodNetwork } from './state.ts';

/** The words after `nft` of one command. */
export type NftCommand = readonly string[];

/** A range of ports that masquerade forwards, both ends included. */
interface PortRange {
  readonly protocol?: string;
  readonly start: number;
  readonly end: number;
}

const MIGRATION_PORTS = '{ 49152, 49153 }';
const ISTIO_PORTS = '{ 15000, 15001, 15004, 15006, 15008, 15009, 15020, 15021, 15053, 15090 }';
const ISTIO_LOOPBACK = '127.0.0.6';
const SSH_PORT = 22;

/** A chain whose presence shows that the rules of a family were made. */
export const MARKER_CHAIN = 'KUBEVIRT_PREINBOUND';

/** What the rules depend on. */
export interface RulesInput {
  readonly vmi: Vmi;
  readonly interfaces: readonly NetworkInterface[];
  readonly current: PodNetwork;
  readonly desired: DesiredNetwork;
  /** Feature gate PortRangesSpec. */
  readonly portRanges: boolean;
}

/**
 * Commands that lead the pod's traffic to the guest and back, in order: IPv4, then IPv6. Chains are appended to, so they
 * must run once in a namespace.
 *
 * @source KubeVirt v1.9.0 pkg/network/setup/netpod/masquerade/masquerade.go:99
 */
export function masqueradeRules(input: RulesInput): NftCommand[] {
  const { vmi, interfaces, current, desired } = input;
  const entries = interfaces.filter((i) => i.binding === 'masquerade');
  const [entry] = entries;
  if (entry === undefined) return [];
  if (entries.length > 1) throw new HandlerError('Invalid', 'only one interface of a VMI can use masquerade');
  const names = podLinkNames(vmi, interfaces.map((i) => i.network), current); // prettier-ignore
  const podLink = names.get(entry.network.name) ?? '';
  const bridge = desired.interfaces?.find((i) => i.name === inPodBridgeName(podLink));
  const podIpv4 = firstGlobal(findInterface(current, podLink)?.IPv4 ?? {})?.IP;
  const rules = (family: 'ip' | 'ip6', state: FamilyState | undefined): NftCommand[] => {
    const gateway = state?.enabled === true ? state.address?.[0]?.IP : undefined;
    if (gateway === undefined) return [];
    return familyRules({ ...input, family, gateway, podLink, iface: entry.iface, podIpv4 });
  };
  return [...rules('ip', bridge?.IPv4), ...rules('ip6', bridge?.IPv6)];
}

/** One script for `nft -f`, which the kernel takes as a whole or not at all. */
export function renderNftScript(commands: readonly NftCommand[]): string {
  return commands.map((words) => `${words.join(' ')}\n`).join('');
}

interface FamilyInput extends RulesInput {
  readonly family: 'ip' | 'ip6';
  readonly gateway: string;
  readonly podLink: string;
  readonly iface: VmiInterface;
  readonly podIpv4: string | undefined;
}

function familyRules(input: FamilyInput): NftCommand[] {
  const { family, gateway, podLink, vmi } = input;
  const guest = guestAddress(gateway);
  const loopback = family === 'ip' ? '127.0.0.1' : '::1';
  const rule = (chain: string, ...words: string[]): NftCommand => ['add', 'rule', family, 'nat', chain, ...words];
  const returns = (ports: string): NftCommand[] =>
    ['output', 'KUBEVIRT_POSTINBOUND'].map((chain) =>
      rule(chain, 'tcp', 'dport', ports, family, 'saddr', loopback, 'counter', 'return'),
    );
  return [
    ...chains(family),
    rule('postrouting', family, 'saddr', guest, 'counter', 'masquerade'),
    rule('prerouting', 'iifname', podLink, 'counter', 'jump', 'KUBEVIRT_PREINBOUND'),
    rule('postrouting', 'oifname', inPodBridgeName(podLink), 'counter', 'jump', 'KUBEVIRT_POSTINBOUND'),
    ...(vmi.status?.migrationTransport === 'Unix' ? [] : returns(MIGRATION_PORTS)),
    ...forwards(input, { guest, loopback, rule, returns }),
  ];
}

function chains(family: 'ip' | 'ip6'): NftCommand[] {
  const chain = (name: string, ...words: string[]): NftCommand => ['add', 'chain', family, 'nat', name, ...words];
  const hook = (name: string, priority: number): NftCommand =>
    chain(name, `{ type nat hook ${name} priority ${priority}; }`);
  return [
    ['add', 'table', family, 'nat'],
    hook('prerouting', -100),
    hook('input', 100),
    hook('output', -100),
    hook('postrouting', 100),
    chain('KUBEVIRT_PREINBOUND'),
    chain('KUBEVIRT_POSTINBOUND'),
  ];
}

interface RuleWriter {
  readonly guest: string;
  readonly loopback: string;
  readonly rule: (chain: string, ...words: string[]) => NftCommand;
  readonly returns: (ports: string) => NftCommand[];
}

function forwards(input: FamilyInput, writer: RuleWriter): NftCommand[] {
  const { iface, family, gateway, portRanges, podIpv4, vmi } = input;
  const { guest, loopback, rule, returns } = writer;
  const istio = vmi.metadata.annotations?.['sidecar.istio.io/inject']?.toLowerCase() === 'true';
  const sources = istio && family === 'ip' ? `{ ${loopback}, ${ISTIO_LOOPBACK} }` : `{ ${loopback} }`;
  const targets = istio && family === 'ip' && podIpv4 !== undefined ? `{ ${loopback}, ${podIpv4} }` : `{ ${loopback} }`;
  const forward = (match: readonly string[], inbound: readonly string[] | undefined): NftCommand[] => [
    ...(inbound === undefined ? [] : [rule('KUBEVIRT_PREINBOUND', ...inbound, 'counter', 'dnat', 'to', guest)]),
    rule('KUBEVIRT_POSTINBOUND', ...match, family, 'saddr', sources, 'counter', 'snat', 'to', gateway),
    rule('output', family, 'daddr', targets, ...match, 'counter', 'dnat', 'to', guest),
  ];
  // With a service mesh the sidecar takes what comes in and hands it on over loopback; only SSH goes straight.
  const ssh = ['tcp', 'dport', `{ ${SSH_PORT} }`];
  const services = declaredPorts(iface, portRanges);
  if (services.length === 0) return [...(istio ? returns(ISTIO_PORTS) : []), ...forward([], istio ? ssh : [])];
  return services.flatMap(({ protocol, first, last, isRange }) => {
    const dport = isRange ? `${first}-${last}` : `${first}`;
    const plain = [protocol, 'dport', isRange ? dport : `{ ${dport} }`];
    const hasSsh = first <= SSH_PORT && SSH_PORT <= last;
    return forward([protocol, 'dport', dport], istio ? (hasSsh ? ssh : undefined) : plain);
  });
}

interface DeclaredPort {
  readonly protocol: string;
  readonly first: number;
  readonly last: number;
  readonly isRange: boolean;
}

function declaredPorts(iface: VmiInterface & { portRanges?: readonly PortRange[] }, ranges: boolean): DeclaredPort[] {
  const protocolOf = (p: { protocol?: string }): string => (p.protocol ?? 'TCP').toLowerCase() || 'tcp';
  const ports = (iface.ports ?? []).map((p: Port) => {
    return { protocol: protocolOf(p), first: p.port, last: p.port, isRange: false };
  });
  const wide = ranges ? (iface.portRanges ?? []) : [];
  return [...ports, ...wide.map((r) => ({ protocol: protocolOf(r), first: r.start, last: r.end, isRange: true }))];
}

function guestAddress(gateway: string): string {
  return formatIp(addToIp(parseIp(gateway) ?? Buffer.alloc(4), 1));
}
