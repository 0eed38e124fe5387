import { type DescField, type DescMessage, ScalarType } from '@bufbuild/protobuf';
import { BinaryReader, BinaryWriter, WireType } from '@bufbuild/protobuf/wire';
import { EMBEDDED } from '@virtwire/vm-model/payloads';
import { MASK, maskJson, maskText } from './mask-json.ts';

/** Stands for bytes that are no message: neither is this. */
const UNDECODABLE = Uint8Array.of(7);
/** Messages of this protocol nest four deep. */
const MAX_DEPTH = 16;

/** Fields that are secret as a whole: what a command in the guest gets and prints, and what its screen shows. */
const SECRET_FIELDS: ReadonlySet<string> = new Set([
  'ExecRequest.Args',
  'ExecResponse.stdOut',
  'ScreenshotResponse.data',
]);

/**
 * A message without what is secret in it, and with all other bytes as they were.
 *
 * Of fields that no release knows, the contents are masked. Of bytes that are no message, nothing is kept.
 */
export function maskMessage(type: DescMessage, bytes: Uint8Array): Uint8Array {
  try {
    return mask(type, bytes, 0);
  } catch {
    return UNDECODABLE;
  }
}

function mask(type: DescMessage, bytes: Uint8Array, depth: number): Uint8Array {
  if (depth > MAX_DEPTH) throw new Error('nested too deep');
  const fields = new Map(type.fields.map((field) => [field.number, field]));
  const reader = new BinaryReader(bytes);
  const writer = new BinaryWriter();
  while (reader.pos < reader.len) {
    const [number, wireType] = reader.tag();
    writer.tag(number, wireType);
    const field = fields.get(number);
    if (wireType === WireType.LengthDelimited) writer.bytes(maskContent(type, field, reader.bytes(), depth));
    else writer.raw(reader.skip(wireType, number));
  }
  return writer.finish();
}

function maskContent(type: DescMessage, field: DescField | undefined, bytes: Uint8Array, depth: number): Uint8Array {
  if (field === undefined) return Buffer.from(MASK);
  if (bytes.length === 0) return bytes;
  const name = `${type.name}.${field.name}`;
  if (SECRET_FIELDS.has(name)) return Buffer.from(MASK);
  // Keys and values of the maps of this protocol are names of volumes and interfaces, and what images are.
  if (field.fieldKind === 'map') return bytes;
  if (field.message !== undefined) return mask(field.message, bytes, depth + 1);
  if (field.scalar !== ScalarType.STRING && field.scalar !== ScalarType.BYTES) return bytes;
  const text = Buffer.from(bytes).toString('utf8');
  const masked = name in EMBEDDED ? maskJson(text) : maskText(text);
  return masked === text ? bytes : Buffer.from(masked);
}
