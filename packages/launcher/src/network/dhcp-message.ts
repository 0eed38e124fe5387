import type { DhcpOption } from './dhcp-options.ts';

/** The parts of a client's DHCPv4 message that an answer depends on. */
export interface DhcpRequest {
  readonly kind: number;
  readonly transaction: Buffer;
  readonly flags: number;
  readonly relay: Buffer;
  /** Hardware address, as long as the client says. */
  readonly hardware: Buffer;
}

/** An answer before it is bytes. */
export interface DhcpReply {
  readonly kind: number;
  readonly request: DhcpRequest;
  readonly clientAddress: Buffer;
  readonly options: readonly DhcpOption[];
}

/** Kinds of message. */
export const DHCP_KIND = { discover: 1, offer: 2, request: 3, ack: 5 } as const;

/** Set by clients that cannot take unicast before they have an address. */
export const BROADCAST_FLAG = 0x8000;

const FIXED_BYTES = 240;
const HARDWARE_BYTES = 16;
const MAGIC = Buffer.from([99, 130, 83, 99]);
const OPTION = { pad: 0, kind: 53, end: 255 } as const;
const MAX_OPTION_BYTES = 255;
/** BOOTP's smallest message. @source KubeVirt v1.9.0 vendor github.com/krolaw/dhcp4 packet.go PadToMinSize */
const MIN_BYTES = 272;

/**
 * Reads a client's message. Its direction and magic cookie are not looked at.
 *
 * @returns undefined for bytes that are no whole message, or that do not say their kind.
 */
export function parseDhcpRequest(bytes: Buffer): DhcpRequest | undefined {
  const length = bytes[2] ?? 0;
  if (bytes.length < FIXED_BYTES || length > HARDWARE_BYTES) return undefined;
  const kind = findOption(bytes.subarray(FIXED_BYTES), OPTION.kind);
  if (kind?.length !== 1) return undefined;
  return {
    kind: kind[0] ?? 0,
    transaction: Buffer.from(bytes.subarray(4, 8)),
    flags: bytes.readUInt16BE(10),
    relay: Buffer.from(bytes.subarray(24, 28)),
    hardware: Buffer.from(bytes.subarray(28, 28 + length)),
  };
}

/** Bytes of an answer: options in the order given, padded to 272 bytes. Values over 255 bytes are split (RFC 3396). */
export function renderDhcpReply(reply: DhcpReply): Buffer {
  const { request, clientAddress } = reply;
  const fixed = Buffer.alloc(FIXED_BYTES);
  fixed.set([2, 1, request.hardware.length, 0], 0);
  fixed.set(request.transaction, 4);
  fixed.writeUInt16BE(request.flags, 10);
  fixed.set(clientAddress, 16);
  fixed.set(request.relay, 24);
  fixed.set(request.hardware, 28);
  fixed.set(MAGIC, 236);
  const options: readonly DhcpOption[] = [[OPTION.kind, Buffer.from([reply.kind])], ...reply.options];
  const bytes = Buffer.concat([fixed, ...options.flatMap(renderOption), Buffer.from([OPTION.end])]);
  return bytes.length >= MIN_BYTES ? bytes : Buffer.concat([bytes, Buffer.alloc(MIN_BYTES - bytes.length)]);
}

function renderOption([code, value]: DhcpOption): Buffer[] {
  const parts: Buffer[] = [];
  for (let at = 0; at === 0 || at < value.length; at += MAX_OPTION_BYTES) {
    const part = value.subarray(at, at + MAX_OPTION_BYTES);
    parts.push(Buffer.from([code, part.length]), part);
  }
  return parts;
}

function findOption(options: Buffer, wanted: number): Buffer | undefined {
  for (let at = 0; at < options.length;) {
    const code = options[at] ?? OPTION.end;
    if (code === OPTION.end) return undefined;
    if (code === OPTION.pad) {
      at += 1;
      continue;
    }
    const length = options[at + 1];
    if (length === undefined || at + 2 + length > options.length) return undefined;
    if (code === wanted) return options.subarray(at + 2, at + 2 + length);
    at += 2 + length;
  }
  return undefined;
}
