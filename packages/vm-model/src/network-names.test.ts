import { describe, expect, test } from 'vitest';
import {
  hashedPodLinkName,
  inPodBridgeName,
  isPrimaryNetwork,
  renamedPodLink,
  tapDeviceName,
} from './network-names.ts';

describe('names of links in a pod', () => {
  test.each([
    ['default', '37a8eec1ce1'],
    ['red', 'b1f51a511f1'],
    ['blue', '16477688c0e'],
    ['net1', '6c270ef2f25'],
    ['mynet', '11c844f95e2'],
    ['bridge-net', '03b731d2111'],
    ['sriov-net', '5862143f341'],
  ])('the link of network %s ends in %s', (network, digits) => {
    expect(hashedPodLinkName(network)).toBe(`pod${digits}`);
  });

  const pod = { name: 'default', pod: {} };
  const multus = { name: 'blue', multus: { networkName: 'ns/blue' } };

  test.each([
    ['eth0', pod, 'k6t-eth0', 'tap0', 'eth0-nic'],
    ['pod16477688c0e', multus, 'k6t-16477688c0e', 'tap16477688c0e', '16477688c0e-nic'],
    ['net1', multus, 'k6t-net1', 'tap1', 'net1-nic'],
  ])('of the pod link %s follow from it and fit the kernel', (podLink, network, bridge, tap, renamed) => {
    const names = [inPodBridgeName(podLink), tapDeviceName(podLink, network), renamedPodLink(podLink)];
    expect(names).toEqual([bridge, tap, renamed]);
    expect(Math.max(...names.map((n) => n.length))).toBeLessThanOrEqual(15);
  });

  test('the pod network and a default multus network are primary', () => {
    expect(isPrimaryNetwork(pod)).toBe(true);
    expect(isPrimaryNetwork({ name: 'a', multus: { networkName: 'n', default: true } })).toBe(true);
    expect(isPrimaryNetwork(multus)).toBe(false);
  });
});
