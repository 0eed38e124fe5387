import fc from 'fast-check';
import { describe, expect, test } from 'vitest';

import { huffmanString, indexed, literal, rawString, sizeUpdate } from '../testing/hpack-encoder.ts';
import { encodeLiterals, type Header, HpackDecoder } from './hpack.ts';
import { HpackError } from './hpack-error.ts';
import { decodeHuffman } from './huffman.ts';

const MAX_LIST_BYTES = 65_536;
const decoder = (): HpackDecoder => new HpackDecoder(MAX_LIST_BYTES);
const hex = (text: string): Buffer => Buffer.from(text.replaceAll(' ', ''), 'hex');
const pairs = (headers: readonly Header[]): string[] => headers.map((header) => `${header.name}: ${header.value}`);

describe('the examples of RFC 7541 appendix C', () => {
  test.each([
    ['f1e3 c2e5 f23a 6ba0 ab90 f4ff', 'www.example.com'],
    ['a8eb 1064 9cbf', 'no-cache'],
    ['25a8 49e9 5ba9 7d7f', 'custom-key'],
    ['25a8 49e9 5bb8 e8b4 bf', 'custom-value'],
    ['d07a be94 1054 d444 a820 0595 040b 8166 e082 a62d 1bff', 'Mon, 21 Oct 2013 20:13:21 GMT'],
  ])('decodes the Huffman string %s', (bytes, text) => {
    expect(decodeHuffman(hex(bytes))).toBe(text);
  });

  test('decodes three requests of one connection, with Huffman and the dynamic table', () => {
    const d = decoder();
    expect(pairs(d.decode(hex('8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff')))).toEqual([
      ':method: GET',
      ':scheme: http',
      ':path: /',
      ':authority: www.example.com',
    ]);
    expect(pairs(d.decode(hex('8286 84be 5886 a8eb 1064 9cbf')))).toContain('cache-control: no-cache');
    expect(pairs(d.decode(hex('8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf')))).toEqual([
      ':method: GET',
      ':scheme: https',
      ':path: /index.html',
      ':authority: www.example.com',
      'custom-key: custom-value',
    ]);
  });
});

describe('the two characters that the wire document names', () => {
  test('a slash is 011000 and a dash 010110 in Huffman code', () => {
    expect(decodeHuffman(Buffer.of(0b01100001, 0b01101111))).toBe('/-');
  });
});

describe('the dynamic table', () => {
  test('forgets the oldest entry when it is full', () => {
    const d = decoder();
    d.decode(Buffer.from(sizeUpdate(80)));
    d.decode(
      Buffer.from([...literal(0x40, rawString('a'), rawString('1')), ...literal(0x40, rawString('b'), rawString('2'))]),
    );
    expect(pairs(d.decode(Buffer.from([...indexed(62), ...indexed(63)])))).toEqual(['b: 2', 'a: 1']);
    d.decode(Buffer.from(literal(0x40, rawString('c'), rawString('3'))));
    expect(() => d.decode(Buffer.from(indexed(64)))).toThrow(HpackError);
  });

  test('is emptied by an entry that is larger than the table', () => {
    const d = decoder();
    d.decode(Buffer.from(sizeUpdate(64)));
    d.decode(Buffer.from(literal(0x40, rawString('a'), rawString('1'))));
    d.decode(Buffer.from(literal(0x40, rawString('a'), rawString('x'.repeat(64)))));
    expect(() => d.decode(Buffer.from(indexed(62)))).toThrow(HpackError);
  });

  test('is not touched by literals that are not to be indexed', () => {
    const d = decoder();
    d.decode(
      Buffer.from([...literal(0x00, rawString('a'), rawString('1')), ...literal(0x10, rawString('b'), rawString('2'))]),
    );
    expect(() => d.decode(Buffer.from(indexed(62)))).toThrow(HpackError);
  });
});

describe('what HPACK forbids', () => {
  test.each<[string, readonly number[]]>([
    ['index zero', indexed(0)],
    ['an index behind both tables', indexed(62)],
    ['a table size over the limit', sizeUpdate(4_097)],
    ['a size update behind a header', [...indexed(2), ...sizeUpdate(0)]],
    ['a string behind the end', [0x00, 0x05, 0x61]],
    ['a block that ends inside a header', [0x40]],
    ['an integer without end', [0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]],
    ['padding of a whole byte', [0x00, 0x82, 0x1f, 0xff, 0x00]],
    ['padding of zeros', [0x00, 0x81, 0x18, 0x00]],
    ['the end-of-string symbol', [0x00, 0x84, 0xff, 0xff, 0xff, 0xff, 0x00]],
  ])('refuses %s', (_what, block) => {
    expect(() => decoder().decode(Buffer.from(block))).toThrow(HpackError);
  });

  test('refuses a small block that unpacks to more than the limit', () => {
    const d = decoder();
    d.decode(Buffer.from(literal(0x40, rawString('a'), rawString('x'.repeat(4_000)))));
    const bomb = Buffer.from(Array.from({ length: 20 }, () => indexed(62)).flat());
    expect(() => d.decode(bomb)).toThrow(/over 65536 bytes/);
  });
});

const byteString = fc.uint8Array({ maxLength: 60 }).map((bytes) => Buffer.from(bytes).toString('latin1'));
const header: fc.Arbitrary<Header> = fc.record({ name: byteString, value: byteString, neverIndexed: fc.boolean() });

describe('properties', () => {
  test('what is encoded decodes to the same headers', () => {
    fc.assert(
      fc.property(fc.array(header, { maxLength: 30 }), (headers) => {
        expect(decoder().decode(encodeLiterals(headers))).toEqual(headers);
      }),
    );
  });

  test('every byte survives Huffman code', () => {
    fc.assert(
      fc.property(byteString, (text) => {
        const block = Buffer.from(literal(0x00, huffmanString(text), huffmanString(text)));
        expect(decoder().decode(block)).toEqual([{ name: text, value: text, neverIndexed: false }]);
      }),
    );
  });

  test('random bytes give headers or an HpackError, and nothing else', () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 200 }), { maxLength: 5 }), (blocks) => {
        const d = decoder();
        for (const block of blocks) {
          try {
            d.decode(block);
          } catch (caught) {
            expect(caught).toBeInstanceOf(HpackError);
          }
        }
      }),
      { numRuns: 2_000 },
    );
  });
});
