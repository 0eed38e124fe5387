import { formatIp } from './ip.ts';
import { parseAttributes, readText } from './netlink-message.ts';

/** Operational state of a link, in words. */
export type OperationalState = 'unknown' | 'not-present' | 'down' | 'lower-layer-down' | 'testing' | 'dormant' | 'up';

const OPERATIONAL_STATES: readonly OperationalState[] = [
  'unknown',
  'not-present',
  'down',
  'lower-layer-down',
  'testing',
  'dormant',
  'up',
];

/** A network link as the kernel lists it. */
export interface Link {
  readonly index: number;
  readonly name: string;
  /** The kernel's kind (`veth`, `bridge`, `tun`...); empty for a plain device such as loopback. */
  readonly kind: string;
  readonly isUp: boolean;
  readonly operationalState: OperationalState;
  /** Lower-case hex with colons; empty when there is none. */
  readonly mac: string;
  readonly mtu: number;
  /** Index of the bridge or bond that it is a port of. */
  readonly masterIndex: number | undefined;
  /** Of a bridge port: whether the bridge learns addresses from it. */
  readonly learning: boolean | undefined;
  /** Of a tun or tap device. */
  readonly tun:
    { readonly isTap: boolean; readonly uid: number | undefined; readonly gid: number | undefined } | undefined;
}

/** An address of a link. */
export interface LinkAddress {
  readonly linkIndex: number;
  readonly family: 4 | 6;
  readonly ip: string;
  /** Of a point-to-point address: 32 or 128, since the prefix belongs to the peer. */
  readonly prefixLength: number;
}

/** A route of the main table. */
export interface Route {
  readonly family: 4 | 6;
  /** `unicast`, or what it does instead (blackhole, unreachable...). */
  readonly isUnicast: boolean;
  /** `0.0.0.0/0` or `::/0` for the default route. */
  readonly destination: string;
  /** Of the same family. */
  readonly gateway: string | undefined;
  /** Missing for routes with several next hops, and for some that drop. */
  readonly linkIndex: number | undefined;
}

const IFF_UP = 1;
const IFLA = { address: 1, name: 3, mtu: 4, master: 10, operationalState: 16, info: 18 } as const;
const INFO = { kind: 1, data: 2, slaveData: 5 } as const;
const BRPORT_LEARNING = 8;
const TUN = { owner: 1, group: 2, type: 3 } as const;
const TUN_TYPE_TAP = 2;

/** Reads the payload of one RTM_NEWLINK. */
export function parseLink(payload: Buffer): Link {
  const attributes = parseAttributes(payload.subarray(16));
  const info = parseAttributes(attributes.get(IFLA.info) ?? Buffer.alloc(0));
  const mac = attributes.get(IFLA.address) ?? Buffer.alloc(0);
  const kind = readText(info.get(INFO.kind));
  const slave = info.get(INFO.slaveData);
  const learning = slave === undefined ? undefined : parseAttributes(slave).get(BRPORT_LEARNING)?.[0];
  return {
    index: payload.readInt32LE(4),
    name: readText(attributes.get(IFLA.name)),
    kind,
    isUp: (payload.readUInt32LE(8) & IFF_UP) !== 0,
    operationalState: OPERATIONAL_STATES[attributes.get(IFLA.operationalState)?.[0] ?? 0] ?? 'unknown',
    mac: [...mac].map((byte) => byte.toString(16).padStart(2, '0')).join(':'),
    mtu: attributes.get(IFLA.mtu)?.readUInt32LE(0) ?? 0,
    masterIndex: attributes.get(IFLA.master)?.readUInt32LE(0),
    learning: learning === undefined ? undefined : learning !== 0,
    tun: kind === 'tun' ? parseTun(info.get(INFO.data)) : undefined,
  };
}

function parseTun(data: Buffer | undefined): NonNullable<Link['tun']> {
  const attributes = parseAttributes(data ?? Buffer.alloc(0));
  return {
    isTap: attributes.get(TUN.type)?.[0] === TUN_TYPE_TAP,
    uid: attributes.get(TUN.owner)?.readUInt32LE(0),
    gid: attributes.get(TUN.group)?.readUInt32LE(0),
  };
}

/** Reads the payload of one RTM_NEWADDR; undefined for a family that is neither IPv4 nor IPv6. */
export function parseAddress(payload: Buffer): LinkAddress | undefined {
  const family = familyOf(payload[0]);
  if (family === undefined) return undefined;
  const attributes = parseAttributes(payload.subarray(8));
  const [address, local] = [attributes.get(1), attributes.get(2)];
  const own = local ?? address;
  if (own === undefined) return undefined;
  const isPeer = local !== undefined && address !== undefined && !local.equals(address);
  return {
    linkIndex: payload.readUInt32LE(4),
    family,
    ip: formatIp(own),
    prefixLength: isPeer ? own.length * 8 : (payload[1] ?? 0),
  };
}

const RTA = { destination: 1, oif: 4, gateway: 5, table: 15 } as const;
const TABLE_MAIN = 254;
const RTN_UNICAST = 1;
const RTM_F_CLONED = 0x200;

/** Reads the payload of one RTM_NEWROUTE; undefined unless it is of the main table. */
export function parseRoute(payload: Buffer): Route | undefined {
  const family = familyOf(payload[0]);
  const attributes = parseAttributes(payload.subarray(12));
  const table = attributes.get(RTA.table)?.readUInt32LE(0) ?? payload[4];
  if (family === undefined || table !== TABLE_MAIN || (payload.readUInt32LE(8) & RTM_F_CLONED) !== 0) return undefined;
  const destination = attributes.get(RTA.destination) ?? Buffer.alloc(family === 4 ? 4 : 16);
  const gateway = attributes.get(RTA.gateway);
  return {
    family,
    isUnicast: payload[7] === RTN_UNICAST,
    destination: `${formatIp(destination)}/${payload[1] ?? 0}`,
    gateway: gateway === undefined ? undefined : formatIp(gateway),
    linkIndex: attributes.get(RTA.oif)?.readUInt32LE(0),
  };
}

function familyOf(number: number | undefined): 4 | 6 | undefined {
  return number === 2 ? 4 : number === 10 ? 6 : undefined;
}
