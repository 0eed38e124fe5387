import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { addToIp, formatIp, isGlobalUnicast, networkOf, parseCidr, parseIp, prefixMask } from './ip.ts';

describe('addresses', () => {
  test.each([
    ['::', '::'],
    ['::1', '::1'],
    ['FD10:0:2:0:0:0:0:1', 'fd10:0:2::1'],
    ['1:0:0:2:0:0:0:3', '1:0:0:2::3'],
    ['1:2:3:4:5:6:7:0', '1:2:3:4:5:6:7:0'],
    ['::ffff:10.0.0.1', '10.0.0.1'],
    ['64:ff9b::1.2.3.4', '64:ff9b::102:304'],
    ['255.255.255.255', '255.255.255.255'],
  ])('%s prints as %s', (given, printed) => {
    expect(formatIp(parseIp(given) ?? Buffer.alloc(0))).toBe(printed);
  });

  test.each(['', '1.2.3', '1.2.3.256', ':::', '1::2::3', 'fe80::1%eth0', 'x'])('%j is none', (given) => {
    expect(parseIp(given)).toBeUndefined();
  });

  test('what is printed reads back', () => {
    const bytes = fc.oneof(
      fc.uint8Array({ minLength: 4, maxLength: 4 }),
      fc.uint8Array({ minLength: 16, maxLength: 16 }),
    );
    const sparse = fc
      .array(fc.constantFrom(0, 0, 0, 1, 255), { minLength: 16, maxLength: 16 })
      .map((a) => Uint8Array.from(a));
    fc.assert(
      fc.property(fc.oneof(bytes, sparse), (address) => {
        const back = parseIp(formatIp(address));
        const wanted = address.length === 16 && back?.length === 4 ? address.slice(12) : address;
        expect(back).toEqual(Buffer.from(wanted));
      }),
    );
  });

  test.each([
    ['10.244.0.5', true],
    ['fd00::5', true],
    ['127.0.0.1', false],
    ['169.254.75.10', false],
    ['224.0.0.1', false],
    ['0.0.0.0', false],
    ['255.255.255.255', false],
    ['::1', false],
    ['::', false],
    ['fe80::1', false],
    ['febf::1', false],
    ['ff02::1', false],
    ['fec0::1', true],
  ])('%s is valid beyond its link: %s', (address, expected) => {
    expect(isGlobalUnicast(address)).toBe(expected);
  });
});

describe('networks', () => {
  test.each([
    ['10.0.2.0/24', '10.0.2.1'],
    ['10.9.8.6/30', '10.9.8.5'],
    ['fd10:0:2::/120', 'fd10:0:2::1'],
    ['10.255.255.255/8', '10.0.0.1'],
  ])('the first host of %s is %s', (range, first) => {
    const cidr = parseCidr(range);
    const network = networkOf(parseIp(cidr?.ip ?? '') ?? Buffer.alloc(0), cidr?.prefixLength ?? 0);
    expect(formatIp(addToIp(network, 1))).toBe(first);
  });

  test.each(['10.0.0.0', '10.0.0.0/33', '10.0.0.0/-1', 'fd00::/129', '10.0.0.0/8/8', '/8', '10.0.0.0/'])(
    '%j is no range',
    (text) => {
      expect(parseCidr(text)).toBeUndefined();
    },
  );

  test('a carry goes on to the next byte', () => {
    expect(addToIp(Uint8Array.of(10, 0, 0, 255), 1)).toEqual(Buffer.from([10, 0, 1, 0]));
    expect(addToIp(Uint8Array.of(10, 0, 255, 255), 300)).toEqual(Buffer.from([10, 1, 1, 43]));
  });

  test('masks have as many bits as they say', () => {
    expect([0, 8, 23, 32].map((n) => prefixMask(n, 4).join('.'))).toEqual([
      '0.0.0.0',
      '255.0.0.0',
      '255.255.254.0',
      '255.255.255.255',
    ]);
    expect(prefixMask(120, 16).at(-1)).toBe(0);
  });
});
