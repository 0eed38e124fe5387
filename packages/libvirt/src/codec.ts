import { LibvirtError } from './errors.ts';
import { MessageLimit } from './gen/constants.gen.ts';
import { STRUCTS } from './gen/schema.gen.ts';
import { TYPED_PARAM_TYPES } from './typed-params.ts';
import type { TypedParam, TypedParamType, TypedParamValue } from './typed-params.ts';
import type { XdrReader, XdrWriter } from './xdr.ts';

/** Encoder and decoder of one XDR type. */
export interface Coder {
  readonly encode: (writer: XdrWriter, value: unknown) => void;
  readonly decode: (reader: XdrReader) => unknown;
}

interface Field extends Coder {
  readonly name: string;
}

const STRING_MAX = MessageLimit.STRING_MAX;

// The values that reach an encoder are typed by the generated signatures; XdrWriter checks them again at run time.
const PRIMITIVES: Readonly<Record<string, Coder>> = {
  int: { encode: (w, v) => w.int(v as number), decode: (r) => r.int() },
  uint: { encode: (w, v) => w.uint(v as number), decode: (r) => r.uint() },
  hyper: { encode: (w, v) => w.hyper(v as bigint), decode: (r) => r.hyper() },
  uhyper: { encode: (w, v) => w.uhyper(v as bigint), decode: (r) => r.uhyper() },
  double: { encode: (w, v) => w.double(v as number), decode: (r) => r.double() },
  char: { encode: (w, v) => w.int(v as number), decode: (r) => r.int() },
  uchar: { encode: (w, v) => w.uint(v as number), decode: (r) => r.uint() },
  ushort: { encode: (w, v) => w.uint(v as number), decode: (r) => r.uint() },
  string: { encode: (w, v) => w.string(v as string, STRING_MAX), decode: (r) => r.string(STRING_MAX) },
  uuid: { encode: (w, v) => w.uuid(v as string), decode: (r) => r.uuid() },
  typed_param: { encode: encodeTypedParam, decode: decodeTypedParam },
};

const TYPE_PATTERN = /^(\w+)(\?)?(?:<=(\d+)|\[(\d+)\])?$/;

// Coders are pure functions of the committed schema, made when a struct is first met and kept: a process uses some
// dozens of the 718.
const structCoders = new Map<string, Coder>();

/** The coder of a struct of the schema, `domain_get_info_ret` for example. */
export function structCoder(name: string): Coder {
  const known = structCoders.get(name);
  if (known !== undefined) return known;
  const coder = createStructCoder(name);
  structCoders.set(name, coder);
  return coder;
}

function structLine(name: string): string | undefined {
  const text = `\n${name} `;
  const start = STRUCTS.startsWith(text.slice(1)) ? 0 : STRUCTS.indexOf(text) + 1;
  if (start === 0 && !STRUCTS.startsWith(text.slice(1))) return undefined;
  const end = STRUCTS.indexOf('\n', start);
  return STRUCTS.slice(start + name.length + 1, end < 0 ? undefined : end);
}

function createStructCoder(name: string): Coder {
  const line = structLine(name);
  if (line === undefined) throw new TypeError(`no struct ${name} in the schema`);
  const fields = line.split(' ').map((text): Field => {
    const [field = '', type = ''] = text.split(':');
    return { name: field, ...createCoder(type) };
  });
  return {
    encode: (writer, value) => encodeFields(writer, fields, value),
    decode: (reader) => {
      const out: Record<string, unknown> = {};
      for (const field of fields) out[field.name] = field.decode(reader);
      return out;
    },
  };
}

function encodeFields(writer: XdrWriter, fields: readonly Field[], value: unknown): void {
  if (typeof value !== 'object' || value === null) throw LibvirtError.client('InvalidArgument', 'no object');
  const record = value as Readonly<Record<string, unknown>>;
  for (const field of fields) {
    try {
      field.encode(writer, record[field.name]);
    } catch (error) {
      if (!(error instanceof LibvirtError)) throw error;
      throw LibvirtError.client('InvalidArgument', `${field.name}: ${error.message}`, { cause: error });
    }
  }
}

function createCoder(type: string): Coder {
  const [, base = '', optional, listMax, fixed] = TYPE_PATTERN.exec(type) ?? [];
  if (listMax !== undefined) return createListCoder(base, Number(listMax));
  if (fixed !== undefined) return createFixedText(Number(fixed));
  const one = PRIMITIVES[base] ?? structCoder(base);
  if (optional === undefined) return one;
  return {
    encode: (writer, value) => {
      writer.int(value === null || value === undefined ? 0 : 1);
      if (value !== null && value !== undefined) one.encode(writer, value);
    },
    decode: (reader) => (reader.int() === 0 ? null : one.decode(reader)),
  };
}

function createListCoder(base: string, max: number): Coder {
  if (base === 'opaque') {
    return { encode: (w, v) => w.opaque(v as Uint8Array, max), decode: (r) => r.opaque(max) };
  }
  if (base === 'char') return createCountedText(max);
  const one = PRIMITIVES[base] ?? structCoder(base);
  return {
    encode: (writer, value) => {
      if (!Array.isArray(value)) throw LibvirtError.client('InvalidArgument', 'no array');
      writer.count(value.length, max);
      for (const element of value) one.encode(writer, element);
    },
    decode: (reader) => {
      const count = reader.count(max);
      const out: unknown[] = [];
      for (let i = 0; i < count; i++) out.push(one.decode(reader));
      return out;
    },
  };
}

/** char[N]: one XDR int per character, filled up with NULs. */
function createFixedText(length: number): Coder {
  return {
    encode: (writer, value) => {
      const bytes = Buffer.from(String(value), 'latin1');
      if (bytes.length > length) {
        throw LibvirtError.client('InvalidArgument', `text of ${String(bytes.length)} bytes, limit ${String(length)}`);
      }
      for (let i = 0; i < length; i++) writer.int(signed(bytes[i] ?? 0));
    },
    decode: (reader) => cutAtNul(readChars(reader, length)),
  };
}

/** char<N>: a count, then one XDR int per character; the C library counts the closing NUL in. */
function createCountedText(max: number): Coder {
  return {
    encode: (writer, value) => {
      const bytes = Buffer.from(String(value), 'latin1');
      writer.count(bytes.length, max);
      for (const byte of bytes) writer.int(signed(byte));
    },
    decode: (reader) => readChars(reader, reader.count(max)),
  };
}

function signed(byte: number): number {
  return byte > 127 ? byte - 256 : byte;
}

function readChars(reader: XdrReader, length: number): string {
  const bytes = Buffer.alloc(length);
  for (let i = 0; i < length; i++) bytes[i] = reader.int() & 0xff;
  return bytes.toString('latin1');
}

function cutAtNul(text: string): string {
  const end = text.indexOf('\0');
  return end < 0 ? text : text.slice(0, end);
}

function encodeTypedParam(writer: XdrWriter, value: unknown): void {
  const { field, type, value: content } = value as TypedParam;
  writer.string(field, STRING_MAX);
  const index = TYPED_PARAM_TYPES.indexOf(type);
  if (index < 0) throw LibvirtError.client('InvalidArgument', `typed parameter ${field}: unknown type ${type}`);
  writer.int(index + 1);
  try {
    encodeParamValue(writer, type, content);
  } catch (error) {
    if (!(error instanceof LibvirtError)) throw error;
    throw LibvirtError.client('InvalidArgument', `typed parameter ${field}: ${error.message}`, { cause: error });
  }
}

function encodeParamValue(writer: XdrWriter, type: TypedParamType, value: TypedParamValue): void {
  switch (type) {
    case 'int':
      return writer.int(value as number);
    case 'uint':
      return writer.uint(value as number);
    case 'llong':
      return writer.hyper(value as bigint);
    case 'ullong':
      return writer.uhyper(value as bigint);
    case 'double':
      return writer.double(value as number);
    case 'boolean':
      return writer.int(value === true ? 1 : 0);
    case 'string':
      return writer.string(value as string, STRING_MAX);
  }
}

function decodeTypedParam(reader: XdrReader): TypedParam {
  const field = reader.string(STRING_MAX);
  const discriminant = reader.int();
  switch (discriminant) {
    case 1:
      return { field, type: 'int', value: reader.int() };
    case 2:
      return { field, type: 'uint', value: reader.uint() };
    case 3:
      return { field, type: 'llong', value: reader.hyper() };
    case 4:
      return { field, type: 'ullong', value: reader.uhyper() };
    case 5:
      return { field, type: 'double', value: reader.double() };
    case 6:
      return { field, type: 'boolean', value: reader.int() !== 0 };
    case 7:
      return { field, type: 'string', value: reader.string(STRING_MAX) };
    default:
      // A union arm of unknown length: what follows cannot be found.
      throw LibvirtError.client(
        'Protocol',
        `malformed XDR: typed parameter ${field} of unknown type ${String(discriminant)}`,
      );
  }
}
