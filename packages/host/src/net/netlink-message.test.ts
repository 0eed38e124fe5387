import fc from 'fast-check';
import { expect, test } from 'vitest';
import { parseAddress, parseLink, parseRoute } from './links.ts';
import { parseAttributes, parseMessages, renderMessage } from './netlink-message.ts';

const attribute = fc.record({ type: fc.integer({ min: 1, max: 0x3fff }), value: fc.uint8Array({ maxLength: 40 }) });

test('a message reads back with its attributes', () => {
  const head = fc.record({
    type: fc.integer({ min: 0, max: 0xffff }),
    flags: fc.integer({ min: 0, max: 0xffff }),
    sequence: fc.integer({ min: 0, max: 0xffff_ffff }),
  });
  const unique = fc.uniqueArray(attribute, { selector: (a) => a.type, maxLength: 8 });
  fc.assert(
    fc.property(head, unique, (fields, attributes) => {
      const bytes = renderMessage(fields, Buffer.alloc(16), attributes);
      const [message, ...more] = parseMessages(Buffer.concat([bytes, Buffer.alloc(2)]));
      expect(more).toEqual([]);
      expect(message).toMatchObject(fields);
      const found = parseAttributes(message?.payload.subarray(16) ?? Buffer.alloc(0));
      expect([...found].map(([type, value]) => [type, [...value]])).toEqual(
        attributes.map((a) => [a.type, [...a.value]]),
      );
    }),
  );
});

test('nested attributes read back', () => {
  const inner = { type: 2, value: Buffer.from('veth\0') };
  const bytes = renderMessage({ type: 16, flags: 0, sequence: 1 }, Buffer.alloc(0), [{ type: 18, value: [inner] }]);
  const outer = parseAttributes(parseMessages(bytes)[0]?.payload ?? Buffer.alloc(0)).get(18);
  expect(
    parseAttributes(outer ?? Buffer.alloc(0))
      .get(2)
      ?.toString(),
  ).toBe('veth\0');
});

test('random bytes never hang or read beyond their end', () => {
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 16, maxLength: 300 }), (bytes) => {
      const data = Buffer.from(bytes);
      for (const message of parseMessages(data)) expect(message.payload.length).toBeLessThanOrEqual(data.length);
      parseAttributes(data);
      parseLink(data);
      parseAddress(data);
      parseRoute(data);
    }),
  );
});
