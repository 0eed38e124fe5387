import { isIPv4, isIPv6 } from 'node:net';

/**
 * Bytes of an IP address in text: 4 or 16 of them.
 *
 * @returns undefined when the text is no address (zones are not accepted).
 */
export function parseIp(text: string): Buffer | undefined {
  if (isIPv4(text)) return Buffer.from(text.split('.').map(Number));
  if (!isIPv6(text) || text.includes('%')) return undefined;
  const dotted = /^(.*:)(\d+)\.(\d+)\.(\d+)\.(\d+)$/.exec(text);
  const plain = dotted === null ? text : `${dotted[1]}${hex16(dotted[2], dotted[3])}:${hex16(dotted[4], dotted[5])}`;
  const [head = '', tail] = plain.split('::');
  const left = groups(head);
  const right = tail === undefined ? [] : groups(tail);
  const all = [...left, ...new Array<number>(8 - left.length - right.length).fill(0), ...right];
  return Buffer.from(all.flatMap((g) => [g >> 8, g & 0xff]));
}

/** Text of 4 or 16 bytes: IPv6 in the canonical short form; IPv4 inside IPv6 (`::ffff:a.b.c.d`) prints as IPv4. */
export function formatIp(bytes: Uint8Array): string {
  const b = Buffer.from(bytes);
  if (b.length === 4) return b.join('.');
  if (isMapped(b)) return b.subarray(12).join('.');
  const words = Array.from({ length: 8 }, (_, i) => b.readUInt16BE(i * 2));
  const [start, length] = longestZeroRun(words);
  const text = (part: readonly number[]): string => part.map((w) => w.toString(16)).join(':');
  if (length < 2) return text(words);
  return `${text(words.slice(0, start))}::${text(words.slice(start + length))}`;
}

/** An address with the length of its network prefix. */
export interface Cidr {
  readonly ip: string;
  readonly prefixLength: number;
}

/** Reads `address/length`; undefined when either half is wrong. */
export function parseCidr(text: string): Cidr | undefined {
  const [address = '', length = '', ...more] = text.split('/');
  const bytes = parseIp(address);
  if (bytes === undefined || more.length > 0 || !/^\d{1,3}$/.test(length)) return undefined;
  const prefixLength = Number(length);
  return prefixLength > bytes.length * 8 ? undefined : { ip: formatIp(bytes), prefixLength };
}

/** The network mask of a prefix length, for addresses of `bytes` bytes. */
export function prefixMask(prefixLength: number, bytes: 4 | 16): Buffer {
  return Buffer.from(
    Array.from({ length: bytes }, (_, i) => {
      const bits = Math.max(0, Math.min(8, prefixLength - i * 8));
      return (0xff00 >> bits) & 0xff;
    }),
  );
}

/** First address of the network that an address lies in. */
export function networkOf(address: Uint8Array, prefixLength: number): Buffer {
  const mask = prefixMask(prefixLength, address.length === 4 ? 4 : 16);
  return Buffer.from(address.map((byte, i) => byte & (mask[i] ?? 0)));
}

/** The address that comes `offset` after another one. */
export function addToIp(address: Uint8Array, offset: number): Buffer {
  const out = Buffer.from(address);
  let carry = offset;
  for (let i = out.length - 1; i >= 0 && carry !== 0; i--) {
    const sum = (out[i] ?? 0) + carry;
    out[i] = sum & 0xff;
    carry = Math.floor(sum / 256);
  }
  return out;
}

/** Whether an address may be used beyond its link: not loopback, link-local, multicast, unspecified or broadcast. */
export function isGlobalUnicast(text: string): boolean {
  const b = parseIp(text);
  if (b === undefined) return false;
  const v4 = b.length === 4 ? b : isMapped(b) ? b.subarray(12) : undefined;
  if (v4 !== undefined) {
    const [x = 0, y = 0] = v4;
    const isSpecial = v4.equals(Buffer.alloc(4)) || v4.equals(Buffer.alloc(4, 0xff));
    return !isSpecial && x !== 127 && (x & 0xf0) !== 0xe0 && !(x === 169 && y === 254);
  }
  const isLoopbackOrNone = b.subarray(0, 15).equals(Buffer.alloc(15)) && (b[15] ?? 0) <= 1;
  const isLinkLocal = b[0] === 0xfe && ((b[1] ?? 0) & 0xc0) === 0x80;
  return !isLoopbackOrNone && !isLinkLocal && b[0] !== 0xff;
}

function isMapped(b: Buffer): boolean {
  return b.subarray(0, 10).equals(Buffer.alloc(10)) && b.readUInt16BE(10) === 0xffff;
}

function groups(text: string): number[] {
  return text === '' ? [] : text.split(':').map((g) => Number.parseInt(g, 16));
}

function hex16(high = '0', low = '0'): string {
  return ((Number(high) << 8) | Number(low)).toString(16);
}

function longestZeroRun(words: readonly number[]): [start: number, length: number] {
  let best: [number, number] = [0, 0];
  for (let i = 0; i < words.length; i++) {
    let end = i;
    while (words[end] === 0) end++;
    if (end - i > best[1]) best = [i, end - i];
    i = Math.max(i, end - 1);
  }
  return best;
}
