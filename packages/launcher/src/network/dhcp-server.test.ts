import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createAnswerer } from './dhcp-server.ts';
import type { DhcpServerConfig } from './dhcp-server.ts';
import { createAnswerer6 } from './dhcp6-server.ts';
import { parseDhcp6, renderDhcp6 } from './dhcp6-message.ts';
import { parseDhcpRequest, renderDhcpReply } from './dhcp-message.ts';
import type { DhcpOption } from './dhcp-options.ts';
import { dhcpOptions } from './dhcp-options.ts';

const MAC = Buffer.from('02000000aa01', 'hex');

const config: DhcpServerConfig = {
  bridge: 'k6t-eth0',
  serverAddress: '169.254.75.10',
  clientAddress: '10.244.0.5',
  clientMac: MAC,
  mask: Buffer.from([255, 255, 255, 0]),
  gateway: '10.244.0.1',
  routes: [],
  nameservers: ['10.96.0.10'],
  search: ['cluster.local'],
  mtu: 1450,
  hostname: 'launcher',
  extra: undefined,
};

function discover(fields: { readonly kind?: number; readonly mac?: Buffer; readonly flags?: number } = {}): Buffer {
  const { kind = 1, mac = MAC, flags = 0 } = fields;
  const bytes = Buffer.alloc(240);
  bytes.set([1, 1, mac.length, 0, 0xde, 0xad, 0xbe, 0xef]);
  bytes.writeUInt16BE(flags, 10);
  bytes.set(mac, 28);
  bytes.set([99, 130, 83, 99], 236);
  return Buffer.concat([bytes, Buffer.from([53, 1, kind, 255])]);
}

/** Options of an answer, values of one code joined. */
function optionsOf(payload: Buffer): Map<number, Buffer> {
  const found = new Map<number, Buffer>();
  for (let at = 240; at < payload.length && payload[at] !== 255;) {
    const [code = 0, length = 0] = payload.subarray(at, at + 2);
    const value = payload.subarray(at + 2, at + 2 + length);
    found.set(code, Buffer.concat([found.get(code) ?? Buffer.alloc(0), value]));
    at += 2 + length;
  }
  return found;
}

const ANYWHERE = { address: '0.0.0.0', port: 68 };

describe('the DHCPv4 server', () => {
  test.each([
    ['DISCOVER', 1, 2],
    ['REQUEST', 3, 5],
  ])('answers %s with the one address', (_name, kind, answer) => {
    const reply = createAnswerer(config)(discover({ kind }), ANYWHERE);
    expect(reply?.to).toEqual({ address: '255.255.255.255', port: 68 });
    expect([...(reply?.payload.subarray(16, 20) ?? [])]).toEqual([10, 244, 0, 5]);
    const options = optionsOf(reply?.payload ?? Buffer.alloc(0));
    expect([...(options.get(53) ?? [])]).toEqual([answer]);
    expect(options.get(26)?.readUInt16BE(0)).toBe(1450);
    expect(reply?.payload.length).toBeGreaterThanOrEqual(272);
  });

  test.each([2, 4, 5, 7, 8, 0, 255])('does not answer messages of kind %i', (kind) => {
    expect(createAnswerer(config)(discover({ kind }), ANYWHERE)).toBeUndefined();
  });

  test('FM-5.4 answers the guest’s MAC only, or anyone when there is none', () => {
    const stranger = discover({ mac: Buffer.from('02000000aa02', 'hex') });
    expect(createAnswerer(config)(stranger, ANYWHERE)).toBeUndefined();
    expect(createAnswerer({ ...config, clientMac: undefined })(stranger, ANYWHERE)).toBeDefined();
  });

  test('answers a client with an address directly, unless it asks for a broadcast', () => {
    const from = { address: '10.244.0.5', port: 1068 };
    expect(createAnswerer(config)(discover(), from)?.to).toEqual(from);
    const flagged = createAnswerer(config)(discover({ flags: 0x8000 }), from);
    expect(flagged?.to).toEqual({ address: '255.255.255.255', port: 1068 });
  });

  test('survives whatever a guest sends', () => {
    const answer = createAnswerer({ ...config, clientMac: undefined });
    fc.assert(fc.property(fc.uint8Array({ maxLength: 600 }), (bytes) => void answer(Buffer.from(bytes), ANYWHERE)));
    const cut = fc.tuple(fc.nat(300), fc.uint8Array({ maxLength: 20 }));
    fc.assert(
      fc.property(cut, ([at, tail]) => void answer(Buffer.concat([discover().subarray(0, at), tail]), ANYWHERE)),
    );
  });

  test('options of any length come out as they went in', () => {
    const options = fc.uniqueArray(fc.tuple(fc.integer({ min: 1, max: 52 }), fc.uint8Array({ maxLength: 700 })), {
      selector: ([code]) => code,
      maxLength: 6,
    });
    fc.assert(
      fc.property(options, (list) => {
        const request = parseDhcpRequest(discover());
        if (request === undefined) throw new Error('the request is whole');
        const given = list.map(([code, value]): DhcpOption => [code, Buffer.from(value)]);
        const payload = renderDhcpReply({ kind: 2, request, clientAddress: Buffer.alloc(4), options: given });
        const found = optionsOf(payload);
        for (const [code, value] of given) expect(found.get(code)).toEqual(value);
      }),
    );
  });
});

describe('options', () => {
  const optionOf = (change: Partial<DhcpServerConfig>, code: number): Buffer | undefined =>
    new Map(dhcpOptions({ ...config, ...change })).get(code);

  test('classless routes put the default route last and keep the bytes that matter', () => {
    const routes = [
      { destination: undefined, gateway: '10.244.0.1' },
      { destination: { ip: '10.245.0.0', prefixLength: 17 }, gateway: '10.244.0.9' },
      { destination: { ip: '10.244.0.1', prefixLength: 32 }, gateway: undefined },
    ];
    expect([...(optionOf({ routes }, 121) ?? [])]).toEqual([
      ...[17, 10, 245, 0, 10, 244, 0, 9],
      ...[32, 10, 244, 0, 1, 0, 0, 0, 0],
      ...[0, 10, 244, 0, 1],
    ]);
  });

  test.each(['bad..example.com', '-x.com', 'x-.com', 'a b', 'ü.de', 'x'.repeat(64), '', '.', '10.0.1', 'a._tcp'])(
    'a search domain %j is an error that names it',
    (domain) => {
      expect(() => dhcpOptions({ ...config, search: [domain] })).toThrow(`Search domain is not valid: '${domain}'`);
    },
  );

  test('a search domain with a final dot is told with it', () => {
    expect(optionOf({ search: ['corp.lan.'] }, 119)).toEqual(Buffer.from('\x04corp\x03lan\0\0'));
    expect(optionOf({ search: ['corp.lan.'] }, 15)).toEqual(Buffer.from('corp.lan.'));
  });

  test('a time server must be an address', () => {
    const extra = { ntpServers: ['192.0.2.1', 'ntp.example.com'] };
    expect(() => dhcpOptions({ ...config, extra })).toThrow(
      'Could not parse NTP server as IPv4 address: ntp.example.com',
    );
  });

  test('private options outside of their range are left out', () => {
    const extra = { privateOptions: [223, 224, 254, 255].map((option) => ({ option, value: 'v' })) };
    const codes = dhcpOptions({ ...config, extra }).map(([code]) => code);
    expect(codes.filter((c) => c > 200)).toEqual([224, 254]);
  });
});

describe('the DHCPv6 server', () => {
  const answer = createAnswerer6({
    bridge: 'k6t-eth0',
    bridgeMac: '02:00:00:00:00:00',
    clientAddress: 'fd10:0:2::2',
    nameservers: [],
  });
  const from = { address: 'fe80::1%k6t-eth0', port: 546 };

  test('ignores relayed messages, which end the Go launcher', () => {
    expect(answer(Buffer.concat([Buffer.from([12]), Buffer.alloc(60)]), from)).toBeUndefined();
  });

  test('messages read back', () => {
    const option = fc.tuple(fc.integer({ min: 0, max: 65535 }), fc.uint8Array({ maxLength: 50 }));
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 11 }), fc.array(option, { maxLength: 8 }), (kind, list) => {
        const options = list.map(([code, value]) => [code, Buffer.from(value)] as const);
        const message = { kind, transaction: Buffer.from([1, 2, 3]), options };
        expect(parseDhcp6(renderDhcp6(message))).toEqual(message);
      }),
    );
  });

  test('survives whatever a guest sends', () => {
    fc.assert(fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => void answer(Buffer.from(bytes), from)));
  });
});
