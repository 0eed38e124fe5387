import { expect, test } from 'vitest';
import { renderRouterAdvertisement } from './router-advertisement.ts';

const FACTS = { mac: '02:00:00:00:00:00', mtu: 1450, gateway: 'fd10:0:2::1/120', lifetimeSeconds: 1800 };

test('says that addresses come by DHCPv6, and names link address, MTU and prefix', () => {
  expect(renderRouterAdvertisement(FACTS).toString('hex')).toBe(
    [
      '8600000040c007080000000000000000',
      '0101020000000000',
      '05010000000005aa',
      '0304788000278d0000093a8000000000',
      'fd100000000200000000000000000000',
    ].join(''),
  );
});

test.each(['10.0.2.1/24', 'fd10::1', '', 'fd10::1/129'])('refuses the gateway %s', (gateway) => {
  expect(() => renderRouterAdvertisement({ ...FACTS, gateway })).toThrow(
    `no IPv6 address with prefix length: ${gateway}`,
  );
});
