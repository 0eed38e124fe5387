import { type DescField, type DescMessage, ScalarType } from '@bufbuild/protobuf';
import { BinaryReader, WireType } from '@bufbuild/protobuf/wire';

/** Something in the bytes of a message that no encoder of the protocol writes. */
export interface WireFlaw {
  /** Names of the fields down to it: `vmi.vmiJson`. Empty for the message itself. */
  readonly path: string;
  readonly text: string;
  /** A field that no release has: of a newer peer, or renumbered. */
  readonly isUnknownField?: true;
}

/** Messages of this protocol nest four deep. */
const MAX_DEPTH = 16;

const VARINTS: ReadonlySet<ScalarType> = new Set([
  ...[ScalarType.BOOL, ScalarType.INT32, ScalarType.INT64, ScalarType.UINT32],
  ...[ScalarType.UINT64, ScalarType.SINT32, ScalarType.SINT64],
]);
const EIGHT_BYTES: ReadonlySet<ScalarType> = new Set([ScalarType.DOUBLE, ScalarType.FIXED64, ScalarType.SFIXED64]);

/**
 * Looks for what a decoder would skip over in silence: fields that the schema does not have, fields of another type,
 * text that is no UTF-8. Fields that were renumbered show as such.
 */
export function wireFlaws(type: DescMessage, bytes: Uint8Array): readonly WireFlaw[] {
  const flaws: WireFlaw[] = [];
  try {
    walk(type, bytes, '', 0, flaws);
  } catch (caught) {
    flaws.push({ path: '', text: caught instanceof Error ? caught.message : String(caught) });
  }
  return flaws;
}

function walk(type: DescMessage, bytes: Uint8Array, path: string, depth: number, flaws: WireFlaw[]): void {
  const fields = new Map(type.fields.map((field) => [field.number, field]));
  const reader = new BinaryReader(bytes);
  if (depth > MAX_DEPTH) {
    flaws.push({ path, text: `is nested more than ${MAX_DEPTH} deep` });
    return;
  }
  while (reader.pos < reader.len) {
    const [number, wireType] = reader.tag();
    const field = fields.get(number);
    const at = `${path}${path === '' ? '' : '.'}${field?.name ?? number}`;
    const expected = field === undefined ? undefined : wireTypesOf(field);
    if (field === undefined || expected?.includes(wireType) !== true) {
      const unknown = { path: at, text: 'is no field of any release', isUnknownField: true as const };
      flaws.push(field === undefined ? unknown : { path: at, text: 'has the type of another field' });
      reader.skip(wireType, number);
    } else if (wireType !== WireType.LengthDelimited) reader.skip(wireType, number);
    else content(field, reader.bytes(), at, depth, flaws);
  }
}

function content(field: DescField, bytes: Uint8Array, at: string, depth: number, flaws: WireFlaw[]): void {
  if (field.fieldKind === 'map') {
    walkEntry(field, bytes, at, depth, flaws);
    return;
  }
  const message = field.message;
  if (message !== undefined) walk(message, bytes, at, depth + 1, flaws);
  else if (field.scalar === ScalarType.STRING && !isUtf8(bytes)) flaws.push({ path: at, text: 'is no UTF-8' });
}

type MapField = Extract<DescField, { readonly fieldKind: 'map' }>;

/** An entry of a map is a message with field 1 as key and field 2 as value. */
function walkEntry(field: MapField, bytes: Uint8Array, at: string, depth: number, flaws: WireFlaw[]): void {
  const reader = new BinaryReader(bytes);
  while (reader.pos < reader.len) {
    const [number, wireType] = reader.tag();
    if (number < 1 || number > 2) flaws.push({ path: at, text: `has an entry with field ${number}` });
    if (wireType !== WireType.LengthDelimited) {
      reader.skip(wireType, number);
      continue;
    }
    const value = reader.bytes();
    if (number === 1 && !isUtf8(value)) flaws.push({ path: at, text: 'has a key that is no UTF-8' });
    if (number === 2 && field.message !== undefined) walk(field.message, value, `${at}[]`, depth + 1, flaws);
  }
}

function wireTypesOf(field: DescField): readonly WireType[] {
  if (field.fieldKind === 'map' || field.message !== undefined) return [WireType.LengthDelimited];
  const single = field.fieldKind === 'enum' || field.scalar === undefined ? WireType.Varint : scalarType(field.scalar);
  const isPackable = field.fieldKind === 'list' && single !== WireType.LengthDelimited;
  return isPackable ? [single, WireType.LengthDelimited] : [single];
}

function scalarType(scalar: ScalarType): WireType {
  if (VARINTS.has(scalar)) return WireType.Varint;
  if (scalar === ScalarType.STRING || scalar === ScalarType.BYTES) return WireType.LengthDelimited;
  return EIGHT_BYTES.has(scalar) ? WireType.Bit64 : WireType.Bit32;
}

const UTF8 = new TextDecoder('utf-8', { fatal: true });

function isUtf8(bytes: Uint8Array): boolean {
  try {
    UTF8.decode(bytes);
    return true;
  } catch {
    return false;
  }
}
