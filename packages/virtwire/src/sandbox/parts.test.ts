import { expect, test } from 'vitest';
import { parseCniResult, renderCniConfig } from './cni.ts';
import { parseMiscMinor } from './devices.ts';
import { chooseSubnet, overlaps, renderNatTable } from './node-network.ts';
import { renderAccounts } from './pod-files.ts';

test('the minor number of a device is the one that the kernel tells', () => {
  expect(parseMiscMinor('238 vhost-net\n232 kvm\n200 tun\n', 'kvm')).toBe(232);
  expect(parseMiscMinor('200 tun\n', 'kvm')).toBeUndefined();
});

test.each([
  ['10.144.0.0/24', '10.144.0.128/25', true],
  ['10.144.0.0/24', '10.144.1.0/24', false],
  ['10.0.0.0/8', '10.144.3.0/24', true],
  ['10.144.0.7', '10.144.0.0/24', true],
])('%s and %s overlap: %s', (a, b, expected) => {
  expect(overlaps(a, b)).toBe(expected);
  expect(overlaps(b, a)).toBe(expected);
});

test('the first free network is taken', () => {
  expect(chooseSubnet(0, ['default', '192.168.1.0/24'])).toBe('10.144.0.0/24');
});

test('a network that a route leads to is passed over', () => {
  const chosen = chooseSubnet(0, ['default', '10.144.0.0/16']);
  expect(overlaps(chosen, '10.144.0.0/16')).toBe(false);
});

test('when every network is taken the error says so', () => {
  expect(() => chooseSubnet(0, ['10.0.0.0/8'])).toThrow(/no free pod network/);
});

test('masquerading replaces a table that a killed process left', () => {
  const text = renderNatTable('virtwire0', '10.144.0.0/24');
  expect(text).toMatch(/^table ip virtwire0\ndelete table ip virtwire0\n/);
  expect(text).toContain('ip saddr 10.144.0.0/24 oifname != "virtwire0" masquerade');
});

test('the plugin does not masquerade itself: it would need iptables', () => {
  const config = renderCniConfig({ bridge: 'virtwire0', subnet: '10.144.0.0/24', leasesDir: '/run/l' });
  expect(config).toMatchObject({ type: 'bridge', bridge: 'virtwire0', ipMasq: false, isGateway: true });
});

test('the address of the pod is read from the answer of the plugin', () => {
  const answer = {
    interfaces: [
      { name: 'virtwire0', mac: 'a' },
      { name: 'veth1', mac: 'b' },
      { name: 'eth0', mac: 'c', sandbox: '/run/netns/x' },
    ],
    ips: [{ version: '4', interface: 2, address: '10.144.0.2/24', gateway: '10.144.0.1' }],
  };
  expect(parseCniResult(JSON.stringify(answer))).toEqual({ ip: '10.144.0.2', gateway: '10.144.0.1', mac: 'c' });
});

test('an answer without address is an error', () => {
  expect(() => parseCniResult('{"ips":[]}')).toThrow(/no address/);
});

test('the user qemu takes the place of whoever has its number or its name', () => {
  const host = 'root:x:0:0::/root:/bin/sh\nmessagebus:x:107:110::/:/no\nqemu:x:64:64::/:/no\n';
  expect(renderAccounts(host, 'qemu:x:107:107::/:/no')).toBe('root:x:0:0::/root:/bin/sh\nqemu:x:107:107::/:/no\n');
});
