import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { LibvirtError } from './errors.ts';
import { Framer } from './frames.ts';
import { decodePacket, encodePacket, PacketStatus, PacketType } from './packet.ts';
import type { Packet } from './packet.ts';

interface VectorMessage {
  readonly program: 'remote' | 'qemu' | 'keepalive';
  readonly procedure: string;
  readonly type: string;
  readonly serial: number;
  readonly status: string;
  readonly struct: string | null;
  readonly body: unknown;
  readonly hex: string;
}

const path = join(import.meta.dirname, '../testdata/vectors.json');
const { messages } = JSON.parse(readFileSync(path, 'utf8')) as { messages: readonly VectorMessage[] };

/** The payload as the recording writes it: opaque as hex, typed parameters nested, stream data under its own name. */
function recorded(payload: Packet['payload']): unknown {
  if (payload.kind === 'none') return null;
  if (payload.kind === 'bytes') return { streamData: Buffer.from(payload.bytes).toString('hex') };
  return plain(payload.value);
}

function plain(value: unknown): unknown {
  if (typeof value === 'bigint') return Number.isSafeInteger(Number(value)) ? Number(value) : { int: String(value) };
  if (value instanceof Uint8Array) return { hex: Buffer.from(value).toString('hex') };
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== 'object' || value === null) return value;
  if ('field' in value && 'type' in value && 'value' in value) {
    const type = ['', 'int', 'uint', 'llong', 'ullong', 'double', 'boolean', 'string'].indexOf(String(value.type));
    const content = typeof value.value === 'boolean' ? Number(value.value) : plain(value.value);
    return { field: value.field, value: { type, value: content } };
  }
  const entries = Object.entries(value).map(([key, one]) => {
    const isUuid = key === 'uuid' && typeof one === 'string';
    return [key, isUuid ? { hex: one.replaceAll('-', '') } : plain(one)];
  });
  return Object.fromEntries(entries) as unknown;
}

describe('the recorded session with libvirt 9.0.0', () => {
  test.each(
    messages.map(
      (message, i) => [`${String(i)} ${message.procedure} ${message.type} ${message.status}`, message] as const,
    ),
  )('packet %s decodes to what was recorded and encodes to the same bytes', (_title, message) => {
    const bytes = Buffer.from(message.hex, 'hex');
    const packet = decodePacket(bytes);
    expect(Buffer.from(encodePacket(packet)).toString('hex')).toBe(message.hex);
    expect(recorded(packet.payload)).toEqual(message.body);
    expect(packet.payload.kind === 'struct').toBe(message.struct !== null);
    const prefix = message.program === 'remote' ? '' : `${message.program.toUpperCase()}_`;
    expect(packet).toMatchObject({
      procedureName: `${prefix}${message.procedure}`,
      serial: message.serial,
      type: PacketType[message.type.toUpperCase() as keyof typeof PacketType],
      status: PacketStatus[message.status.toUpperCase() as keyof typeof PacketStatus],
    });
    if (packet.payload.kind === 'struct') expect(packet.payload.trailing).toHaveLength(0);
  });

  test.each([1, 2, 3, 5, 7, 27, 28, 29, 63, 100, 4_096, 65_536])(
    'is cut into the same packets in chunks of %d bytes',
    (size) => {
      const stream = Buffer.concat(messages.map((message) => Buffer.from(message.hex, 'hex')));
      const packets: string[] = [];
      const framer = new Framer((packet) => packets.push(packet.toString('hex')));
      for (let at = 0; at < stream.length; at += size) framer.push(stream.subarray(at, at + size));
      expect(packets).toEqual(messages.map((message) => message.hex));
      expect(framer.isMidPacket).toBe(false);
    },
  );
});

describe('framing', () => {
  test.each([0, 3, 4, 27, 33_554_437, 0x7fff_ffff, 0xffff_ffff])(
    'refuses a length of %d, whole or in parts',
    (length) => {
      const word = Buffer.alloc(4);
      word.writeUInt32BE(length);
      expect(() => new Framer(() => undefined).push(word)).toThrow(/not a libvirt daemon/);
      const parts = new Framer(() => undefined);
      parts.push(word.subarray(0, 1));
      expect(() => parts.push(word.subarray(1))).toThrow(LibvirtError);
    },
  );

  test('takes nothing more once it is stopped in the middle of a chunk', () => {
    const first = Buffer.from(messages[0]?.hex ?? '', 'hex');
    let count = 0;
    const framer = new Framer(() => {
      count++;
      framer.stop();
    });
    framer.push(Buffer.concat([first, first, first]));
    expect(count).toBe(1);
  });

  test('of any bytes ends in packets, an error, or a wait for more', () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 64 }), { maxLength: 20 }), (chunks) => {
        const framer = new Framer((packet) => expect(packet.length).toBeGreaterThanOrEqual(28));
        try {
          for (const chunk of chunks) framer.push(Buffer.from(chunk));
        } catch (error) {
          expect(error).toBeInstanceOf(LibvirtError);
        }
      }),
      { numRuns: 500 },
    );
  });
});

describe('decodePacket', () => {
  test('of mutated packets gives a packet or a Protocol error, and what it gives can be encoded', () => {
    const all = messages.map((message) => Buffer.from(message.hex, 'hex')).filter((bytes) => bytes.length < 4_000);
    fc.assert(
      fc.property(fc.constantFrom(...all), fc.nat(), fc.integer({ min: 0, max: 255 }), (bytes, at, value) => {
        const mutated = Buffer.from(bytes);
        mutated[at % mutated.length] = value;
        try {
          encodePacket(decodePacket(mutated));
        } catch (error) {
          expect(error).toBeInstanceOf(LibvirtError);
        }
      }),
      { numRuns: 2_000 },
    );
  });

  test('keeps what a newer daemon adds at the end of a struct', () => {
    const reply = Buffer.from(messages.find((one) => one.struct === 'remote_auth_list_ret')?.hex ?? '', 'hex');
    const longer = Buffer.concat([reply, Buffer.from([1, 2, 3, 4])]);
    longer.writeUInt32BE(longer.length);
    const packet = decodePacket(longer);
    expect(packet.payload).toMatchObject({ kind: 'struct', trailing: new Uint8Array([1, 2, 3, 4]) });
    expect(Buffer.from(encodePacket(packet))).toEqual(longer);
  });

  test('knows the descriptor count of packets that pass descriptors', () => {
    const packet: Packet = {
      program: 0x2000_8086,
      version: 1,
      procedure: 343,
      procedureName: 'DOMAIN_OPEN_GRAPHICS_FD',
      type: PacketType.REPLY_WITH_FDS,
      serial: 7,
      status: PacketStatus.OK,
      descriptors: 1,
      payload: { kind: 'none' },
    };
    expect(decodePacket(encodePacket(packet))).toEqual(packet);
  });
});
