import { networkOf, parseCidr, parseIp, parseMac } from '@virtwire/host';
import { HandlerError } from '../../errors.ts';

/** Types of ICMPv6 that a guest and its router exchange. */
export const ND_TYPE = { routerSolicitation: 133, routerAdvertisement: 134 } as const;

const OPTION = { sourceLinkAddress: 1, prefix: 3, mtu: 5 } as const;
const HOP_LIMIT = 64;
/** Addresses and the rest by DHCPv6: masquerade passes traffic to the one address that DHCPv6 gives. */
const MANAGED_AND_OTHER = 0xc0;
const ON_LINK = 0x80;
const PREFIX_VALID_SECONDS = 30 * 24 * 60 * 60;
const PREFIX_PREFERRED_SECONDS = 7 * 24 * 60 * 60;

/** A gateway as its link sees it. */
export interface RouterFacts {
  readonly mac: string;
  /** Bytes. */
  readonly mtu: number;
  /** The gateway's address with prefix length, as in `fd10:0:2::1/120`. */
  readonly gateway: string;
  /** How long guests may use the gateway without hearing of it again; at most 9000. */
  readonly lifetimeSeconds: number;
}

/**
 * A router advertisement (RFC 4861 §4.2), checksum left to the kernel. Guests make no address of their own from it.
 *
 * @throws {HandlerError} `Invalid` for facts that no packet can carry.
 */
export function renderRouterAdvertisement({ mac, mtu, gateway, lifetimeSeconds }: RouterFacts): Buffer {
  const head = Buffer.alloc(16);
  head.set([ND_TYPE.routerAdvertisement, 0, 0, 0, HOP_LIMIT, MANAGED_AND_OTHER]);
  head.writeUInt16BE(lifetimeSeconds, 6);
  const source = Buffer.from([OPTION.sourceLinkAddress, 1, ...parseMac(mac)]);
  const size = Buffer.from([OPTION.mtu, 1, 0, 0, 0, 0, 0, 0]);
  size.writeUInt32BE(mtu, 4);
  return Buffer.concat([head, source, size, prefixOption(gateway)]);
}

function prefixOption(gateway: string): Buffer {
  const cidr = parseCidr(gateway);
  const address = cidr === undefined ? undefined : parseIp(cidr.ip);
  if (cidr === undefined || address?.length !== 16) {
    throw new HandlerError('Invalid', `no IPv6 address with prefix length: ${gateway}`);
  }
  const option = Buffer.alloc(32);
  option.set([OPTION.prefix, 4, cidr.prefixLength, ON_LINK]);
  option.writeUInt32BE(PREFIX_VALID_SECONDS, 4);
  option.writeUInt32BE(PREFIX_PREFERRED_SECONDS, 8);
  networkOf(address, cidr.prefixLength).copy(option, 16);
  return option;
}
