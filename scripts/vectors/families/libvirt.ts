import { decodePacket, encodePacket, type Packet } from '@virtwire/libvirt';
import type { Files } from '../../testdata/bundle.ts';
import { diffJson } from '../compare.ts';
import { type CaseResult, runCase } from '../family.ts';

interface Message {
  readonly dir: string;
  readonly program: string;
  readonly procedure: string;
  readonly type: string;
  readonly serial: number;
  readonly status: string;
  readonly body: unknown;
  readonly hex: string;
}

const PROGRAMS: Readonly<Record<string, number>> = { remote: 0x20008086, qemu: 0x20008087, keepalive: 0x6b656570 };
/** By their wire numbers, from 1. */
const TYPED_PARAM_TYPES = ['int', 'uint', 'llong', 'ullong', 'double', 'boolean', 'string'];
const TYPES = ['call', 'reply', 'message', 'stream', 'call-with-fds', 'reply-with-fds', 'stream-hole'];
const STATUSES = ['ok', 'error', 'continue'];

/** Every recorded packet must decode to the recorded values, and encode to the recorded bytes again. */
export async function* runLibvirt(files: Files): AsyncIterable<CaseResult> {
  const path = files.has('vectors.json') ? 'vectors.json' : (files.paths.find((p) => p.endsWith('.json')) ?? '');
  const { messages } = files.json(path) as { readonly messages: readonly Message[] };
  for (const [index, message] of messages.entries()) {
    const name = `${String(index + 1)} ${message.dir} ${message.program} ${message.procedure} ${message.type}`;
    yield await runCase(name, () => runMessage(message));
  }
}

function runMessage(message: Message): readonly string[] {
  const packet = decodePacket(Buffer.from(message.hex, 'hex'));
  const again = Buffer.from(encodePacket(packet)).toString('hex');
  return [
    ...diffJson(headerOf(message), {
      program: packet.program,
      procedure: packet.procedureName,
      type: TYPES[packet.type],
      serial: packet.serial,
      status: STATUSES[packet.status],
    }),
    ...diffJson(plain(message.body), bodyOf(packet), '/body'),
    ...(again === message.hex ? [] : [`encodes to ${again} instead of ${message.hex}`]),
  ];
}

/** The client names procedures uniquely: those of other programs than REMOTE carry the program's name. */
function headerOf({ program, procedure, type, serial, status }: Message): object {
  const name = program === 'remote' ? procedure : `${program.toUpperCase()}_${procedure}`;
  return { program: PROGRAMS[program], procedure: name, type, serial, status };
}

function bodyOf({ payload }: Packet): unknown {
  if (payload.kind === 'none') return null;
  if (payload.kind === 'bytes') return { streamData: Buffer.from(payload.bytes).toString('hex') };
  const trailing = payload.trailing.length > 0 ? { trailing: Buffer.from(payload.trailing).toString('hex') } : {};
  return plain({ ...(payload.value as object), ...trailing });
}

/** One form for both sides: bytes and UUIDs as hex, integers as decimal text, typed parameters by the name of the type. */
function plain(value: unknown): unknown {
  if (value instanceof Uint8Array) return Buffer.from(value).toString('hex');
  if (typeof value === 'bigint' || Number.isInteger(value)) return String(value);
  if (typeof value === 'string') return isUuid(value) ? value.replaceAll('-', '') : value;
  if (typeof value !== 'object' || value === null) return value ?? null;
  if (Array.isArray(value)) return value.map(plain);
  const fields = value as Readonly<Record<string, unknown>>;
  const keys = Object.keys(fields);
  if (keys.length === 1 && typeof fields['hex'] === 'string') return fields['hex'];
  if (keys.length === 1 && 'int' in fields) return String(fields['int']);
  if ('field' in fields && 'value' in fields) return plainParam(fields);
  return Object.fromEntries(keys.map((key) => [key, plain(fields[key])]));
}

function plainParam(param: Readonly<Record<string, unknown>>): unknown {
  const { field, value } = param;
  if (typeof value === 'object' && value !== null && 'type' in value) {
    const recorded = value as { readonly type: number; readonly value?: unknown };
    return { field, type: TYPED_PARAM_TYPES[recorded.type - 1], value: plainParamValue(recorded.value) };
  }
  return { field, type: param['type'], value: plainParamValue(value) };
}

/** Recorded booleans are 0 and 1. */
function plainParamValue(value: unknown): unknown {
  return plain(typeof value === 'boolean' ? Number(value) : value);
}

function isUuid(text: string): boolean {
  return /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(text);
}
