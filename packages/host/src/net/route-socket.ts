import { HostError } from '../errors.ts';
import { parseCidr, parseIp } from './ip.ts';
import { parseAddress, parseLink, parseRoute } from './links.ts';
import type { Link, LinkAddress, Route } from './links.ts';
import type { NetworkNamespace } from './namespace.ts';
import { text, u32, u8 } from './netlink-message.ts';
import type { Attribute } from './netlink-message.ts';
import { NetlinkSocket } from './netlink-socket.ts';

const RTM = { newLink: 16, delLink: 17, getLink: 18, setLink: 19, newAddr: 20, delAddr: 21, getAddr: 22 } as const;
const RTM_ROUTE = { new: 24, del: 25, get: 26 } as const;
const NLM_F = { replace: 0x100, exclusive: 0x200, create: 0x400 } as const;
const IFF_UP = 1;
const AF_BRIDGE = 7;
const IFLA = { address: 1, name: 3, mtu: 4, master: 10, protInfo: 12, info: 18, netNsFd: 28 } as const;
const BRPORT_LEARNING = 8;
const VETH_INFO_PEER = 1;

/** Kinds of link that can be created here. */
export type NewLinkKind = 'bridge' | 'dummy' | 'ifb';

/** Changes of one link; what is missing stays. */
export interface LinkChange {
  readonly name?: string;
  readonly mac?: string;
  readonly mtu?: number;
  /** Index of the bridge to join; 0 leaves it. */
  readonly masterIndex?: number;
  readonly up?: boolean;
  /** Moves it to another network namespace. */
  readonly namespace?: NetworkNamespace;
}

/**
 * Links, addresses and routes of one network namespace, by the kernel's own protocol: no child processes. Lists are
 * synchronous, changes are not. Hold it with `using`.
 */
export class RouteSocket implements Disposable {
  readonly #socket: NetlinkSocket;

  private constructor(socket: NetlinkSocket) {
    this.#socket = socket;
  }

  /** @param namespace the one to work in; the own one by default. */
  static open(namespace?: NetworkNamespace): RouteSocket {
    return new RouteSocket(new NetlinkSocket(namespace));
  }

  /** All links, by index. */
  links(): Link[] {
    return this.#socket
      .dump(RTM.getLink, Buffer.alloc(16))
      .map(parseLink)
      .sort((a, b) => a.index - b.index);
  }

  /** The link of that name. */
  link(name: string): Link | undefined {
    return this.links().find((l) => l.name === name);
  }

  addresses(): LinkAddress[] {
    return this.#socket.dump(RTM.getAddr, Buffer.alloc(8)).flatMap((p) => parseAddress(p) ?? []);
  }

  /** Routes of the main table, IPv4 first, in the kernel's order. */
  routes(): Route[] {
    const list = (family: number): Route[] => {
      const fixed = Buffer.alloc(12);
      fixed[0] = family;
      return this.#socket.dump(RTM_ROUTE.get, fixed).flatMap((p) => parseRoute(p) ?? []);
    };
    return [...list(2), ...list(10)];
  }

  async createLink(name: string, kind: NewLinkKind): Promise<void> {
    const attributes: Attribute[] = [text(IFLA.name, name), { type: IFLA.info, value: [text(1, kind)] }];
    await this.#newLink(`create link ${name} of type ${kind}`, attributes);
  }

  /** Creates a pair of links; the second one may be born in another namespace. */
  async createVeth(name: string, peer: string, peerNamespace?: NetworkNamespace): Promise<void> {
    const peerAttributes = [
      text(IFLA.name, peer),
      ...(peerNamespace === undefined ? [] : [u32(IFLA.netNsFd, peerNamespace.fd)]),
    ];
    // The peer starts with a link header of its own, which passes as an attribute's raw bytes.
    const value = Buffer.concat([Buffer.alloc(16), ...peerAttributes.map(rawAttribute)]);
    const data: Attribute = { type: 2, value: [{ type: VETH_INFO_PEER, value }] };
    const attributes: Attribute[] = [text(IFLA.name, name), { type: IFLA.info, value: [text(1, 'veth'), data] }];
    await this.#newLink(`create veth pair ${name}, ${peer}`, attributes);
  }

  async deleteLink(index: number): Promise<void> {
    await this.#socket.change(`delete link ${index}`, RTM.delLink, 0, linkHeader({ index }), []);
  }

  /** Changes one link in one call. */
  async setLink(index: number, change: LinkChange): Promise<void> {
    const { name, mac, mtu, masterIndex, up, namespace } = change;
    const attributes: Attribute[] = [
      ...(name === undefined ? [] : [text(IFLA.name, name)]),
      ...(mac === undefined ? [] : [{ type: IFLA.address, value: parseMac(mac) }]),
      ...(mtu === undefined ? [] : [u32(IFLA.mtu, mtu)]),
      ...(masterIndex === undefined ? [] : [u32(IFLA.master, masterIndex)]),
      ...(namespace === undefined ? [] : [u32(IFLA.netNsFd, namespace.fd)]),
    ];
    const header = linkHeader({ index, ...(up === undefined ? {} : { up }) });
    await this.#socket.change(
      `set ${Object.keys(change).join(', ')} of link ${index}`,
      RTM.newLink,
      0,
      header,
      attributes,
    );
  }

  /** Whether the bridge learns addresses from this port. */
  async setLearning(index: number, learning: boolean): Promise<void> {
    const attributes: Attribute[] = [{ type: IFLA.protInfo, value: [u8(BRPORT_LEARNING, learning ? 1 : 0)] }];
    const header = linkHeader({ index, family: AF_BRIDGE });
    await this.#socket.change(`set learning of bridge port ${index}`, RTM.setLink, 0, header, attributes);
  }

  /** @param cidr `10.0.2.1/24`. @throws {HostError} errno `EEXIST` if it is there. */
  async addAddress(index: number, cidr: string): Promise<void> {
    const flags = NLM_F.create | NLM_F.exclusive;
    await this.#address(`add address ${cidr} to link ${index}`, RTM.newAddr, flags, index, cidr);
  }

  /** @throws {HostError} errno `EADDRNOTAVAIL` if it is not there. */
  async deleteAddress(index: number, cidr: string): Promise<void> {
    await this.#address(`delete address ${cidr} of link ${index}`, RTM.delAddr, 0, index, cidr);
  }

  /** Adds or replaces a route of the main table. @param destination `0.0.0.0/0` for the default. */
  async addRoute(route: { destination: string; gateway?: string; linkIndex: number }): Promise<void> {
    const { destination, gateway, linkIndex } = route;
    const { bytes, prefixLength } = cidrBytes(destination);
    const fixed = Buffer.alloc(12);
    const scopeLink = gateway === undefined ? 253 : 0;
    fixed.set([bytes.length === 4 ? 2 : 10, prefixLength, 0, 0, 254, 4, bytes.length === 4 ? scopeLink : 0, 1]);
    const via = gateway === undefined ? undefined : parseIp(gateway);
    const attributes: Attribute[] = [
      ...(prefixLength === 0 ? [] : [{ type: 1, value: bytes }]),
      ...(via === undefined ? [] : [{ type: 5, value: via }]),
      u32(4, linkIndex),
    ];
    const flags = NLM_F.create | NLM_F.replace;
    await this.#socket.change(`add route to ${destination}`, RTM_ROUTE.new, flags, fixed, attributes);
  }

  [Symbol.dispose](): void {
    this.#socket[Symbol.dispose]();
  }

  async #newLink(doing: string, attributes: readonly Attribute[]): Promise<void> {
    await this.#socket.change(doing, RTM.newLink, NLM_F.create | NLM_F.exclusive, linkHeader({}), attributes);
  }

  async #address(doing: string, type: number, flags: number, index: number, cidr: string): Promise<void> {
    const { bytes, prefixLength } = cidrBytes(cidr);
    const fixed = Buffer.alloc(8);
    fixed.set([bytes.length === 4 ? 2 : 10, prefixLength]);
    fixed.writeUInt32LE(index, 4);
    await this.#socket.change(doing, type, flags, fixed, [
      { type: 2, value: bytes },
      { type: 1, value: bytes },
    ]);
  }
}

function linkHeader(fields: { readonly index?: number; readonly family?: number; readonly up?: boolean }): Buffer {
  const header = Buffer.alloc(16);
  header[0] = fields.family ?? 0;
  header.writeInt32LE(fields.index ?? 0, 4);
  if (fields.up !== undefined) {
    header.writeUInt32LE(fields.up ? IFF_UP : 0, 8);
    header.writeUInt32LE(IFF_UP, 12);
  }
  return header;
}

function rawAttribute(attribute: Attribute): Buffer {
  const value = Buffer.from(attribute.value as Uint8Array);
  const out = Buffer.alloc(4 + ((value.length + 3) & ~3));
  out.writeUInt16LE(4 + value.length, 0);
  out.writeUInt16LE(attribute.type, 2);
  value.copy(out, 4);
  return out;
}

function cidrBytes(text: string): { readonly bytes: Buffer; readonly prefixLength: number } {
  const cidr = parseCidr(text);
  const bytes = cidr === undefined ? undefined : parseIp(cidr.ip);
  if (cidr === undefined || bytes === undefined) throw new HostError('Netlink', `bad address ${text}`);
  return { bytes, prefixLength: cidr.prefixLength };
}

/** Bytes of a hardware address in the form `0a:58:0a:f4:00:05`. @throws {HostError} `Netlink` for another form. */
export function parseMac(mac: string): Buffer {
  if (!/^[0-9a-f]{2}(:[0-9a-f]{2}){5}$/i.test(mac)) throw new HostError('Netlink', `bad hardware address ${mac}`);
  return Buffer.from(mac.replaceAll(':', ''), 'hex');
}
