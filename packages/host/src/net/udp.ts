import * as dgram from 'node:dgram';
import * as fs from 'node:fs';
import { once } from 'node:events';
import { libc, throwErrno } from '../libc.ts';
import { parseIp } from './ip.ts';
import { HostError } from '../errors.ts';

const AF_INET = 2;
const AF_INET6 = 10;
const SOCK_DGRAM = 2;
const SOCK_CLOEXEC = 0o2000000;
const SOL_SOCKET = 1;
const SO_REUSEADDR = 2;
const SO_BROADCAST = 6;
const SO_BINDTODEVICE = 25;
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
  const fd = makeSocket(options);
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

function makeSocket(options: BoundUdp): number {
  const { family, port, device } = options;
  const doing = `bind UDP port ${port} on ${device}`;
  const fd = libc().socket(family === 4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) throwErrno(doing);
  try {
    const set = (level: number, name: number, value: Buffer): void => {
      if (libc().setsockopt(fd, level, name, value, value.length) !== 0) throwErrno(doing);
    };
    const on = Buffer.from([1, 0, 0, 0]);
    set(SOL_SOCKET, SO_REUSEADDR, on);
    set(SOL_SOCKET, SO_BINDTODEVICE, Buffer.from(`${device}\0`, 'latin1'));
    if (family === 4) set(SOL_SOCKET, SO_BROADCAST, on);
    else set(IPPROTO_IPV6, IPV6_V6ONLY, on);
    const address = Buffer.alloc(family === 4 ? 16 : 28);
    address.writeUInt16LE(family === 4 ? AF_INET : AF_INET6, 0);
    address.writeUInt16BE(port, 2);
    if (libc().bind(fd, address, address.length) !== 0) throwErrno(doing);
    for (const { group, linkIndex } of options.joinGroups ?? []) {
      const request = Buffer.concat([parseIp(group) ?? Buffer.alloc(16), Buffer.alloc(4)]);
      request.writeUInt32LE(linkIndex, 16);
      set(IPPROTO_IPV6, IPV6_JOIN_GROUP, request);
    }
    return fd;
  } catch (caught) {
    fs.closeSync(fd);
    throw caught;
  }
}
