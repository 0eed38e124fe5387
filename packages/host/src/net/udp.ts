import * as dgram from 'node:dgram';
import * as fs from 'node:fs';
import { once } from 'node:events';
import { libc, throwErrno } from '../libc.ts';
import { makeSocket, SOCKET } from './inet-socket.ts';
import { parseIp } from './ip.ts';
import { HostError } from '../errors.ts';

const SOL_SOCKET = 1;
const SO_REUSEADDR = 2;
const SO_BROADCAST = 6;
const IPPROTO_IPV6 = 41;
const IPV6_JOIN_GROUP = 20;
const IPV6_V6ONLY = 26;

/** A UDP server that sees and sends packets of one network link only. */
export interface BoundUdp {
  readonly family: 4 | 6;
  readonly port: number;
  readonly device: string;
  /** IPv6 multicast groups to join on that link. */
  readonly joinGroups?: readonly { readonly group: string; readonly linkIndex: number }[];
}

/**
 * Opens a UDP socket on all addresses, tied to one link before it is bound, so that broadcasts go out by that link.
 * Needs CAP_NET_BIND_SERVICE for a port below 1024 and nothing more (Linux 5.7 and later).
 */
export async function openBoundUdp(options: BoundUdp): Promise<dgram.Socket> {
  const fd = bindSocket(options);
  const socket = dgram.createSocket(options.family === 4 ? 'udp4' : 'udp6');
  const listening = once(socket, 'listening');
  socket.bind({ fd });
  try {
    await listening;
  } catch (caught) {
    fs.closeSync(fd);
    throw HostError.from(caught, 'Syscall', `listen on UDP port ${options.port} of ${options.device}`);
  }
  return socket;
}

function bindSocket({ family, port, device, joinGroups = [] }: BoundUdp): number {
  const doing = `bind UDP port ${port} on ${device}`;
  const domain = family === 4 ? SOCKET.inet : SOCKET.inet6;
  return makeSocket({ family: domain, type: SOCKET.datagram, protocol: 0, device, doing }, (socket) => {
    socket.setNumber(SOL_SOCKET, SO_REUSEADDR, 1);
    if (family === 4) socket.setNumber(SOL_SOCKET, SO_BROADCAST, 1);
    else socket.setNumber(IPPROTO_IPV6, IPV6_V6ONLY, 1);
    const address = Buffer.alloc(family === 4 ? 16 : 28);
    address.writeUInt16LE(domain, 0);
    address.writeUInt16BE(port, 2);
    if (libc().bind(socket.fd, address, address.length) !== 0) throwErrno(doing);
    for (const { group, linkIndex } of joinGroups) {
      const request = Buffer.concat([parseIp(group) ?? Buffer.alloc(16), Buffer.alloc(4)]);
      request.writeUInt32LE(linkIndex, 16);
      socket.set(IPPROTO_IPV6, IPV6_JOIN_GROUP, request);
    }
  });
}
