import { isGlobalUnicast } from '@virtwire/host';
import { HandlerError } from '../../errors.ts';
import { addressesOf, cidrOf } from './addresses.ts';
import type { DesiredNetwork, InterfaceState, LinuxStack, PodNetwork } from './state.ts';

/** One change in a pod's network namespace. */
export type NetworkOp =
  | { readonly kind: 'linkAdd'; readonly name: string; readonly type: 'bridge' | 'dummy' }
  | { readonly kind: 'createTap'; readonly name: string; readonly tap: NewTapDevice }
  | { readonly kind: 'linkDelete'; readonly name: string }
  | { readonly kind: 'linkRename'; readonly name: string; readonly to: string }
  | { readonly kind: 'linkUp' | 'linkDown' | 'linkLearningOff'; readonly name: string }
  | { readonly kind: 'linkSetMac'; readonly name: string; readonly mac: string }
  /** The other link may be made by the same plan, so its address is read when its turn comes. */
  | { readonly kind: 'linkCopyMac'; readonly name: string; readonly from: string }
  | { readonly kind: 'linkSetMtu'; readonly name: string; readonly mtu: number }
  | { readonly kind: 'linkSetMaster'; readonly name: string; readonly bridge: string }
  | { readonly kind: 'addrAdd' | 'addrDelete'; readonly name: string; readonly cidr: string }
  | { readonly kind: 'sysctl'; readonly path: string; readonly value: string };

/** A tap device to make. */
interface NewTapDevice {
  readonly uid: number;
  readonly gid: number;
  readonly queues: number;
  readonly mtu: number | undefined;
}

/** A link as it will be at a point of the plan. `undefined` fields are not known before the plan runs. */
interface Draft {
  name: string;
  readonly type: string | undefined;
  readonly isNew: boolean;
  isUp: boolean;
  mac: string | undefined;
  readonly mtu: number | undefined;
  readonly controller: string | undefined;
  readonly learning: boolean;
  readonly routeLocalnet: boolean;
  addresses: string[];
}

/**
 * The changes that lead from the current to the desired state; none where they agree. Changes nothing itself.
 *
 * @throws {HandlerError} `Invalid` when a link of a wanted name has another type.
 * @source KubeVirt v1.9.0 pkg/network/driver/nmstate/spec.go:33
 */
export function planNetwork(current: PodNetwork, desired: DesiredNetwork): NetworkOp[] {
  const drafts = new Map(current.interfaces.map((link) => [link.index ?? 0, draftOf(link)]));
  const links = (desired.interfaces ?? []).flatMap((wanted) => planLink(wanted, drafts));
  return [...links, ...stackOps(desired['linux-stack'], current['linux-stack'])];
}

function draftOf(link: InterfaceState): Draft {
  return {
    name: link.name,
    type: link.type,
    isNew: false,
    isUp: link.state === 'up' || link.state === 'lower-layer-down',
    mac: link['mac-address'],
    mtu: link.mtu,
    controller: link.controller,
    learning: link['linux-stack']['port-learning'] === true,
    routeLocalnet: link['linux-stack']['ip4-route-local-net'] === true,
    addresses: [...addressesOf(link.IPv4), ...addressesOf(link.IPv6)].map(cidrOf),
  };
}

function planLink(wanted: InterfaceState, drafts: Map<number, Draft>): NetworkOp[] {
  const byName = [...drafts.entries()].find(([, d]) => d.name === wanted.name);
  const [key, found] = wanted.index === undefined ? (byName ?? []) : [wanted.index, drafts.get(wanted.index)];
  if (wanted.state === 'absent') {
    if (found === undefined || key === undefined) return [];
    drafts.delete(key);
    return [{ kind: 'linkDelete', name: found.name }];
  }
  if (found !== undefined) {
    checkType(wanted, found);
    return configure(wanted, found, drafts);
  }
  const create = creation(wanted);
  const isTap = create.kind === 'createTap';
  const draft: Draft = {
    name: wanted.name,
    type: wanted.type,
    isNew: true,
    isUp: false,
    mac: undefined,
    mtu: isTap ? wanted.mtu : undefined,
    controller: undefined,
    learning: false,
    routeLocalnet: false,
    addresses: [],
  };
  drafts.set(-drafts.size - 1, draft);
  return [create, ...configure(wanted, draft, drafts)];
}

function creation(wanted: InterfaceState): NetworkOp {
  const { name, type, tap, mtu } = wanted;
  if (type === 'bridge' || type === 'dummy') return { kind: 'linkAdd', name, type };
  if (type === 'tap') {
    const { UID: uid = 0, GID: gid = 0, queues = 0 } = tap ?? {};
    return { kind: 'createTap', name, tap: { uid, gid, queues, mtu } };
  }
  throw new HandlerError('Invalid', `unsupported interface type [${name}]: "${type ?? ''}"`);
}

function checkType(wanted: InterfaceState, found: Draft): void {
  if (wanted.type === undefined || wanted.type === found.type) return;
  // Kernels without the dummy driver get an empty bridge in its place.
  if (wanted.type === 'dummy' && found.type === 'bridge') return;
  throw new HandlerError(
    'Invalid',
    `type collision on link ${found.name}: actual ${found.type}, requested ${wanted.type}`,
  );
}

function configure(wanted: InterfaceState, draft: Draft, drafts: Map<number, Draft>): NetworkOp[] {
  const ops: NetworkOp[] = [];
  const { name, controller, mtu } = wanted;
  const mac = macChange(wanted, draft, drafts);
  const isRenamed = draft.name !== name;
  if ((isRenamed || mac !== undefined) && draft.isUp) {
    ops.push({ kind: 'linkDown', name: draft.name });
    draft.isUp = false;
    draft.addresses = draft.addresses.filter((a) => !a.includes(':')); // the kernel drops them with the link
  }
  if (isRenamed) ops.push({ kind: 'linkRename', name: draft.name, to: name });
  draft.name = name;
  if (mac !== undefined) ops.push(mac);
  if (mtu !== undefined && mtu > 0 && mtu !== draft.mtu) ops.push({ kind: 'linkSetMtu', name, mtu });
  if (controller !== undefined && controller !== draft.controller) {
    ops.push({ kind: 'linkSetMaster', name, bridge: controller });
  }
  ops.push(...addressOps(wanted, draft));
  if (wanted.state === 'up') {
    if (!draft.isUp) ops.push({ kind: 'linkUp', name });
    draft.isUp = true;
  }
  if (wanted['linux-stack']['ip4-route-local-net'] === true && !draft.routeLocalnet) {
    ops.push({ kind: 'sysctl', path: `net/ipv4/conf/${name}/route_localnet`, value: '1' });
  }
  // A bridge learns from each port that joins it.
  const learns = draft.learning || controller !== draft.controller;
  if (wanted['linux-stack']['port-learning'] === false && learns) ops.push({ kind: 'linkLearningOff', name });
  return ops;
}

function macChange(wanted: InterfaceState, draft: Draft, drafts: Map<number, Draft>): NetworkOp | undefined {
  const { name } = wanted;
  const mac = wanted['mac-address'];
  const from = wanted['copy-mac-from'];
  if (mac !== undefined && from !== undefined) {
    throw new HandlerError('Invalid', `both mac-address and copy-mac-from are given for link ${name}`);
  }
  if (mac !== undefined) return mac === draft.mac ? undefined : { kind: 'linkSetMac', name, mac };
  if (from === undefined) return undefined;
  const source = [...drafts.values()].find((d) => d.name === from);
  const isSame = source?.mac !== undefined && source.mac === draft.mac;
  return isSame ? undefined : { kind: 'linkCopyMac', name, from };
}

/** Unwanted addresses go, except the link-local one that the kernel itself gives to a link that stays up. */
function addressOps(wanted: InterfaceState, draft: Draft): NetworkOp[] {
  const { name } = wanted;
  const target = [wanted.IPv4, wanted.IPv6].flatMap((f) => (f.enabled === true ? addressesOf(f) : [])).map(cidrOf);
  const isOwn = (cidr: string): boolean => cidr.includes(':') && !isGlobalUnicast(cidr.split('/')[0] ?? '');
  const drop = draft.addresses.filter((a) => !target.includes(a) && !isOwn(a));
  const add = target.filter((a) => !draft.addresses.includes(a));
  draft.addresses = target;
  return [
    ...drop.map((cidr): NetworkOp => ({ kind: 'addrDelete', name, cidr })),
    ...add.map((cidr): NetworkOp => ({ kind: 'addrAdd', name, cidr })),
  ];
}

function stackOps(wanted: LinuxStack, current: LinuxStack): NetworkOp[] {
  const { ipv4, ipv6 } = wanted;
  const ops: NetworkOp[] = [];
  const set = (path: string, value: string, present: string | undefined): void => {
    if (value !== present) ops.push({ kind: 'sysctl', path, value });
  };
  const range = (r: readonly number[] | undefined): string | undefined => r?.join(' ');
  if (ipv4.forwarding === true) set('net/ipv4/ip_forward', '1', current.ipv4.forwarding === true ? '1' : '0');
  if (ipv6.forwarding === true) {
    set('net/ipv6/conf/all/forwarding', '1', current.ipv6.forwarding === true ? '1' : '0');
  }
  if (ipv4['arp-ignore'] !== undefined) {
    set('net/ipv4/conf/all/arp_ignore', String(ipv4['arp-ignore']), String(current.ipv4['arp-ignore']));
  }
  const groups = range(ipv4['ping-group-range']);
  if (groups !== undefined) set('net/ipv4/ping_group_range', groups, range(current.ipv4['ping-group-range']));
  if (ipv4['unprivileged-port-start'] !== undefined) {
    const start = String(ipv4['unprivileged-port-start']);
    set('net/ipv4/ip_unprivileged_port_start', start, String(current.ipv4['unprivileged-port-start']));
  }
  return ops;
}
