import { structCoder } from './codec.ts';
import type { Coder } from './codec.ts';
import { LibvirtError } from './errors.ts';
import { MessageLimit } from './gen/constants.gen.ts';
import { findProcedureByNumber } from './procedures.ts';
import type { Procedure } from './procedures.ts';
import { XdrReader, XdrWriter } from './xdr.ts';

/** Bytes of the length word and the header. */
export const HEADER_BYTES = 28;

/** Longest packet, its length word included. */
export const PACKET_MAX_BYTES = MessageLimit.MAX + MessageLimit.LEN_MAX;

/** Packet types on the wire. */
export const PacketType = {
  CALL: 0,
  REPLY: 1,
  MESSAGE: 2,
  STREAM: 3,
  CALL_WITH_FDS: 4,
  REPLY_WITH_FDS: 5,
  STREAM_HOLE: 6,
} as const;

/** Packet statuses on the wire. */
export const PacketStatus = { OK: 0, ERROR: 1, CONTINUE: 2 } as const;

/** Header of a packet, numbers as on the wire. */
export interface PacketHeader {
  readonly program: number;
  readonly version: number;
  readonly procedure: number;
  readonly type: number;
  readonly serial: number;
  readonly status: number;
}

/** One decoded packet. */
export interface Packet extends PacketHeader {
  /** Name of the procedure in this package, undefined when the schema does not know it. */
  readonly procedureName: string | undefined;
  /**
   * `none`: no payload. `struct`: decoded by the schema. `bytes`: stream data, or a payload that the schema has no
   * struct for.
   */
  readonly payload:
    | { readonly kind: 'none' }
    | { readonly kind: 'struct'; readonly value: unknown; readonly trailing: Uint8Array }
    | { readonly kind: 'bytes'; readonly bytes: Uint8Array };
  /** Number of descriptors that follow a packet of type CALL_WITH_FDS or REPLY_WITH_FDS. */
  readonly descriptors: number;
}

/** Reads the header; the reader must stand after the length word. */
export function readHeader(reader: XdrReader): PacketHeader {
  return {
    program: reader.uint(),
    version: reader.uint(),
    procedure: reader.int(),
    type: reader.uint(),
    serial: reader.uint(),
    status: reader.uint(),
  };
}

/** Starts a packet: a place for the length, then the header. */
export function startPacket(header: PacketHeader): XdrWriter {
  const writer = new XdrWriter();
  writer.uint(0);
  writer.uint(header.program);
  writer.uint(header.version);
  writer.int(header.procedure);
  writer.uint(header.type);
  writer.uint(header.serial);
  writer.uint(header.status);
  return writer;
}

/**
 * Fills in the length.
 *
 * @throws {LibvirtError} `InvalidArgument` over 32 MiB.
 */
export function finishPacket(writer: XdrWriter): Buffer {
  const bytes = writer.bytes();
  if (bytes.length > PACKET_MAX_BYTES) {
    throw LibvirtError.client(
      'InvalidArgument',
      `packet of ${String(bytes.length)} bytes, limit ${String(PACKET_MAX_BYTES)}`,
    );
  }
  writer.patchUint(0, bytes.length);
  return bytes;
}

/**
 * Decodes one whole packet, of either direction.
 *
 * @param bytes starts with the 4-byte big-endian length that counts itself.
 * @throws {LibvirtError} `Protocol` when the length is wrong or the payload does not decode.
 * @source libvirt virnetprotocol.x
 */
export function decodePacket(bytes: Uint8Array): Packet {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const reader = new XdrReader(buffer);
  const length = reader.uint();
  if (length !== buffer.length || length < HEADER_BYTES || length > PACKET_MAX_BYTES) {
    throw LibvirtError.client('Protocol', `packet says ${String(length)} bytes, ${String(buffer.length)} given`);
  }
  const header = readHeader(reader);
  const hasDescriptors = header.type === PacketType.CALL_WITH_FDS || header.type === PacketType.REPLY_WITH_FDS;
  const descriptors = hasDescriptors ? readDescriptorCount(reader) : 0;
  const procedure = findProcedureByNumber(header.program, header.procedure);
  const coder = payloadCoder(procedure, header, reader.remaining > 0);
  const base = { ...header, procedureName: procedure?.name, descriptors };
  if (coder !== undefined) {
    const value = coder.decode(reader);
    return { ...base, payload: { kind: 'struct', value, trailing: new Uint8Array(reader.rest()) } };
  }
  if (reader.remaining === 0) return { ...base, payload: { kind: 'none' } };
  return { ...base, payload: { kind: 'bytes', bytes: new Uint8Array(reader.rest()) } };
}

/** Encodes a packet; the opposite of `decodePacket`. */
export function encodePacket(packet: Packet): Uint8Array {
  const writer = startPacket(packet);
  if (packet.type === PacketType.CALL_WITH_FDS || packet.type === PacketType.REPLY_WITH_FDS) {
    writer.uint(packet.descriptors);
  }
  if (packet.payload.kind === 'struct') {
    const procedure = findProcedureByNumber(packet.program, packet.procedure);
    const coder = payloadCoder(procedure, packet, true);
    if (coder === undefined) throw LibvirtError.client('InvalidArgument', 'a packet of this kind has no struct');
    coder.encode(writer, packet.payload.value);
    writer.raw(packet.payload.trailing);
  } else if (packet.payload.kind === 'bytes') {
    writer.raw(packet.payload.bytes);
  }
  return finishPacket(writer);
}

/**
 * Reads how many descriptors follow the packet.
 *
 * @throws {LibvirtError} `Protocol` over 32.
 */
export function readDescriptorCount(reader: XdrReader): number {
  const count = reader.uint();
  if (count > MessageLimit.NUM_FDS_MAX) {
    throw LibvirtError.client(
      'Protocol',
      `packet with ${String(count)} descriptors, limit ${String(MessageLimit.NUM_FDS_MAX)}`,
    );
  }
  return count;
}

function payloadCoder(procedure: Procedure | undefined, header: PacketHeader, hasPayload: boolean): Coder | undefined {
  switch (header.type) {
    case PacketType.CALL:
    case PacketType.CALL_WITH_FDS:
      return procedure?.args;
    case PacketType.REPLY:
    case PacketType.REPLY_WITH_FDS:
      return header.status === PacketStatus.ERROR ? structCoder('virNetMessageError') : procedure?.ret;
    case PacketType.MESSAGE:
      return procedure?.msg;
    case PacketType.STREAM:
      // A client's abort has status ERROR too, but no payload.
      return header.status === PacketStatus.ERROR && hasPayload ? structCoder('virNetMessageError') : undefined;
    case PacketType.STREAM_HOLE:
      return structCoder('virNetStreamHole');
    default:
      return undefined;
  }
}
