import * as dgram from 'node:dgram';
import * as fs from 'node:fs';
import { libc, throwErrno } from '../libc.ts';
import { makeSocket, SOCKET } from './inet-socket.ts';

const IPPROTO_IPV6 = 41;
const IPV6_UNICAST_HOPS = 16;
const IPV6_MULTICAST_HOPS = 18;
const IPPROTO_ICMPV6 = 58;
const ICMP6_FILTER = 1;
const FILTER_WORDS = 8;
/** Neighbour discovery is refused by its receivers when a router could have passed it on. */
const OWN_LINK_HOPS = 255;

/** The port to give to `send`: raw sockets have none, and the kernel takes the protocol's number in its place. */
export const ICMP6_PORT = IPPROTO_ICMPV6;

/** An ICMPv6 socket that sees and sends packets of one network link only. */
export interface BoundIcmp6 {
  readonly device: string;
  /** Types to receive, 0 to 255; all others are dropped by the kernel. */
  readonly receives: readonly number[];
}

/**
 * Opens a raw ICMPv6 socket in the network namespace of the calling thread. Messages begin with their type; the kernel
 * fills in the checksum and sends with hop limit 255. Needs CAP_NET_RAW.
 *
 * @throws {HostError} `Syscall`
 */
export function openBoundIcmp6({ device, receives }: BoundIcmp6): dgram.Socket {
  const doing = `open ICMPv6 on ${device}`;
  const type = SOCKET.raw | SOCKET.nonBlocking;
  const raw = makeSocket({ family: SOCKET.inet6, type, protocol: IPPROTO_ICMPV6, device, doing }, (socket) => {
    socket.set(IPPROTO_ICMPV6, ICMP6_FILTER, blockAllBut(receives));
    socket.setNumber(IPPROTO_IPV6, IPV6_UNICAST_HOPS, OWN_LINK_HOPS);
    socket.setNumber(IPPROTO_IPV6, IPV6_MULTICAST_HOPS, OWN_LINK_HOPS);
  });
  try {
    return adopt(raw, doing);
  } finally {
    fs.closeSync(raw);
  }
}

/**
 * Node refuses descriptors that are no UDP sockets, though its loop works on any datagram socket. So it is given a UDP
 * socket, and the raw one takes that one's number before the loop watches it, which it does in its next turn.
 */
function adopt(raw: number, doing: string): dgram.Socket {
  const fd = libc().socket(SOCKET.inet6, SOCKET.datagram | SOCKET.closeOnExec, 0);
  if (fd < 0) throwErrno(doing);
  const socket = dgram.createSocket('udp6');
  socket.bind({ fd });
  if (libc().dup2(raw, fd) >= 0) return socket;
  try {
    throwErrno(doing);
  } finally {
    socket.close();
  }
}

/** The kernel's bitmap: one bit per type in words of 32, in the byte order of the machine; a set bit blocks. */
function blockAllBut(types: readonly number[]): Uint8Array {
  const words = new Uint32Array(FILTER_WORDS).fill(0xffffffff);
  for (const type of types) {
    const at = type >>> 5;
    words[at] = (words[at] ?? 0) & ~(1 << (type & 31));
  }
  return new Uint8Array(words.buffer);
}
