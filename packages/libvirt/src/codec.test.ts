import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { structCoder } from './codec.ts';
import { LibvirtError } from './errors.ts';
import { STRUCTS } from './gen/schema.gen.ts';
import { TYPED_PARAM_TYPES } from './typed-params.ts';
import { XdrReader, XdrWriter } from './xdr.ts';

const LINES = STRUCTS.split('\n').map((line) => {
  const [name = '', ...fields] = line.split(' ');
  return { name, fields: fields.map((field) => field.split(':') as [string, string]) };
});
const FIELDS_OF = new Map(LINES.map(({ name, fields }) => [name, fields]));

const text = fc.string({ unit: 'grapheme', maxLength: 12 }).map((value) => value.replaceAll('\0', ''));
const uuid = fc.uuid();
const int = fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 });
const uint = fc.integer({ min: 0, max: 2 ** 32 - 1 });
const hyper = fc.bigInt(-(2n ** 63n), 2n ** 63n - 1n);
const uhyper = fc.bigInt(0n, 2n ** 64n - 1n);
const double = fc.double();
const values = { int, uint, llong: hyper, ullong: uhyper, double, boolean: fc.boolean(), string: text };
const typedParam = fc.oneof(
  ...TYPED_PARAM_TYPES.map((type) => fc.record({ field: text, type: fc.constant(type), value: values[type] })),
);
const PRIMITIVES: Readonly<Record<string, fc.Arbitrary<unknown>>> = {
  int,
  uint,
  hyper,
  uhyper,
  double,
  uuid,
  char: int,
  uchar: uint,
  ushort: uint,
  string: text,
  typed_param: typedParam,
};

function valueOf(type: string): fc.Arbitrary<unknown> {
  const [, base = '', optional, max, fixed] = /^(\w+)(\?)?(?:<=(\d+)|\[(\d+)\])?$/.exec(type) ?? [];
  if (base === 'opaque') return fc.uint8Array({ maxLength: Math.min(Number(max), 40) });
  if (base === 'char' && (max ?? fixed) !== undefined) {
    return fc.string({ unit: 'grapheme-ascii', maxLength: Math.min(Number(max ?? fixed), 20) });
  }
  const one = PRIMITIVES[base] ?? recordOf(base);
  if (optional !== undefined) return fc.option(one, { nil: null });
  return max === undefined ? one : fc.array(one, { maxLength: Math.min(Number(max), 3) });
}

function recordOf(struct: string): fc.Arbitrary<unknown> {
  const fields = FIELDS_OF.get(struct) ?? [];
  return fc.record(Object.fromEntries(fields.map(([name, type]) => [name, valueOf(type)])), { noNullPrototype: true });
}

function encode(struct: string, value: unknown): Buffer {
  const writer = new XdrWriter();
  structCoder(struct).encode(writer, value);
  return writer.bytes();
}

describe('all structs of the protocol', () => {
  test('come back from the wire as they went', () => {
    expect(LINES.length).toBeGreaterThan(700);
    for (const { name } of LINES) {
      fc.assert(
        fc.property(recordOf(name), (value) => {
          const bytes = encode(name, value);
          const reader = new XdrReader(bytes);
          const decoded = structCoder(name).decode(reader);
          expect(decoded).toEqual(value);
          expect(reader.remaining).toBe(0);
          expect(bytes.length % 4).toBe(0);
        }),
        { numRuns: 12 },
      );
    }
  });

  test('decode or refuse any bytes, and never hang or ask for memory that the bytes do not justify', () => {
    for (const { name } of LINES) {
      fc.assert(
        fc.property(fc.uint8Array({ maxLength: 80 }), (bytes) => {
          try {
            structCoder(name).decode(new XdrReader(Buffer.from(bytes)));
          } catch (error) {
            expect(error).toBeInstanceOf(LibvirtError);
            expect((error as LibvirtError).kind).toBe('Protocol');
          }
        }),
        { numRuns: 10 },
      );
    }
  });

  test('refuse a truncated value at every length', () => {
    const value = {
      retStats: [{ dom: { name: 'x', uuid: '00000000-0000-0000-0000-000000000001', id: 1 }, params: [] }],
    };
    const bytes = encode('connect_get_all_domain_stats_ret', value);
    for (let length = 0; length < bytes.length; length++) {
      const decode = (): unknown =>
        structCoder('connect_get_all_domain_stats_ret').decode(new XdrReader(bytes.subarray(0, length)));
      expect(decode).toThrow(LibvirtError);
    }
  });
});

test.each<[string, string, unknown, string]>([
  [
    'an int out of range',
    'domain_get_state_ret',
    { state: 2 ** 31, reason: 0 },
    'state: 2147483648 is no signed 32-bit integer',
  ],
  ['a fraction', 'domain_get_state_ret', { state: 1.5, reason: 0 }, 'state: 1.5 is no signed 32-bit integer'],
  ['a missing field', 'domain_get_state_ret', { state: 1 }, 'reason: a undefined is no signed 32-bit integer'],
  ['a number for a 64-bit field', 'connect_get_version_ret', { hv_ver: 5 }, 'hv_ver: 5 is no unsigned 64-bit bigint'],
  ['a negative unsigned', 'connect_get_version_ret', { hv_ver: -1n }, 'hv_ver: -1 is no unsigned 64-bit bigint'],
  ['null for a text', 'connect_get_type_ret', { type: null }, 'type: a object is no text'],
  ['a text with a NUL', 'connect_get_type_ret', { type: 'a\0b' }, 'type: text with a NUL'],
  ['a list past its limit', 'auth_list_ret', { types: Array(21).fill(0) }, 'types: list of 21 elements, limit 20'],
  ['a text for a list', 'auth_list_ret', { types: 'no' }, 'types: no array'],
  ['no struct at all', 'auth_list_ret', undefined, 'no object'],
  ['a nested mistake', 'domain_get_info_args', { dom: { name: 'x', uuid: 'y', id: 1 } }, "dom: uuid: 'y' is no uuid"],
  [
    'a typed parameter with a value of another type',
    'domain_get_job_stats_ret',
    { type: 0, params: [{ field: 'bandwidth', type: 'ullong', value: 'much' }] },
    'params: typed parameter bandwidth: a string is no unsigned 64-bit bigint',
  ],
])('refuses to encode %s, and says where', (_title, struct, value, message) => {
  expect(() => encode(struct, value)).toThrow(expect.objectContaining({ kind: 'InvalidArgument', message }) as Error);
});

test.each<[string, string, readonly number[], RegExp]>([
  ['a list longer than its limit', 'auth_list_ret', [0x7fffffff], /list of 2147483647 elements, limit 20/],
  ['a list longer than the packet', 'auth_list_ret', [20], /list of 20 elements in 0 bytes/],
  ['a text longer than the packet', 'connect_get_type_ret', [1_000_000, 0], /1000000 bytes wanted/],
  ['a text longer than its limit', 'connect_get_type_ret', [0xffffffff], /string of 4294967295 bytes, limit 4194304/],
  [
    'an unknown arm of a union',
    'domain_get_job_stats_ret',
    [0, 1, 1, 0x61000000, 8, 0],
    /typed parameter a of unknown type 8/,
  ],
])('refuses to decode %s', (_title, struct, words, message) => {
  const bytes = Buffer.alloc(words.length * 4);
  words.forEach((word, i) => bytes.writeUInt32BE(word >>> 0, i * 4));
  expect(() => structCoder(struct).decode(new XdrReader(bytes))).toThrow(message);
});
