import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import type { Link } from '@virtwire/host';
import { createLogger } from '@virtwire/telemetry';
import type { Vmi } from '@virtwire/vm-model';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { DhcpPlan } from './dhcp-config.ts';
import { createGuestNetwork } from './guest-network.ts';
import type { GuestNetwork, PodLinks } from './guest-network.ts';
import { parseResolvConf, searchWithSubdomain } from './resolv-conf.ts';

let directory: string;
let plans: DhcpPlan[];

beforeEach(() => {
  directory = fs.mkdtempSync(path.join(os.tmpdir(), 'virtwire-guest-network-'));
  plans = [];
});

afterEach(() => {
  fs.rmSync(directory, { recursive: true });
});

function link(name: string, index: number, fields: Partial<Link> = {}): Link {
  const plain = { kind: '', isUp: true, operationalState: 'up', masterIndex: undefined, learning: undefined } as const;
  return { ...plain, name, index, mac: `0a:00:00:00:00:0${index}`, mtu: 1450, tun: undefined, ...fields };
}

const POD: PodLinks = {
  links: [link('eth0', 3), link('k6t-eth0', 4, { mac: '02:00:00:00:00:00' }), link('tap0', 5)],
  addresses: [{ linkIndex: 3, family: 4, ip: '10.244.0.5', prefixLength: 24 }],
};

function network(pod: PodLinks = POD): GuestNetwork {
  return createGuestNetwork(
    {
      log: createLogger('virt-launcher', { destination: { write: () => undefined } }),
      onFailure: () => undefined,
      readLinks: () => pod,
      startServers: async (plan) => {
        plans.push(plan);
        return [];
      },
    },
    { privateDir: directory, resolvConfPath: path.join(directory, 'no-resolv.conf'), hostname: 'h' },
  );
}

function vmiWith(iface: object, networks: object[] = [{ name: 'default', pod: {} }]): Vmi {
  const name = (networks[0] as { name: string }).name;
  return {
    metadata: { namespace: 'ns', name: 'vm', uid: 'u' },
    spec: { domain: { devices: { interfaces: [{ name, ...iface }] } }, networks: networks as { name: string }[] },
  };
}

const CARD = [{ Alias: { Name: 'default' } }];

describe('network phase 2', () => {
  test('completes the card and starts one server, once', async () => {
    const guest = network();
    const expected = {
      MAC: { MAC: '0a:00:00:00:00:03' },
      MTU: { Size: '1450' },
      Target: { Device: 'tap0', Managed: 'no' },
    };
    expect(await guest.prepare(vmiWith({ masquerade: {} }), CARD, { default: 'tap' })).toEqual([
      { ...CARD[0], ...expected },
    ]);
    await guest.prepare(vmiWith({ masquerade: {} }), CARD, { default: 'tap' });
    expect(plans).toMatchObject([{ v4: { clientAddress: '10.0.2.2', serverAddress: '10.0.2.1', bridge: 'k6t-eth0' } }]);
    expect(fs.readdirSync(directory)).toEqual(['dhcp_started-eth0']);
  });

  test('takes the spec’s MAC in the form that libvirt prints', async () => {
    const vmi = vmiWith({ masquerade: {}, macAddress: '02-00-00-AA-bb-01' });
    const [card] = await network().prepare(vmi, CARD, { default: 'tap' });
    expect(card?.MAC).toEqual({ MAC: '02:00:00:aa:bb:01' });
  });

  test('leaves cards alone that are no taps', async () => {
    expect(await network({ links: [], addresses: [] }).prepare(vmiWith({ passtBinding: {} }), CARD, {})).toEqual(CARD);
    expect(plans).toEqual([]);
  });

  test('takes the pod link itself where the node agent has made no tap', async () => {
    const pod = { ...POD, links: POD.links.filter((l) => l.name !== 'tap0') };
    const [card] = await network(pod).prepare(vmiWith({ masquerade: {} }), CARD, { default: 'tap' });
    expect(card?.Target).toEqual({ Device: 'eth0', Managed: 'no' });
  });

  test.each([
    ['hashed', 'pod16477688c0e', 'tap16477688c0e'],
    ['ordinal, of old pods', 'net1', 'tap1'],
  ])('finds a secondary link whose name is %s', async (_what, podLink, tap) => {
    const vmi = vmiWith({ bridge: {} }, [{ name: 'blue', multus: { networkName: 'n' } }]);
    fs.writeFileSync(path.join(directory, `vif-cache-${podLink}.json`), '{"IPAMDisabled":true}');
    const pod = { links: [link(podLink, 3), link(tap, 4)], addresses: [] };
    const [card] = await network(pod).prepare(vmi, [{ Alias: { Name: 'blue' } }], { blue: 'tap' });
    expect(card?.Target).toEqual({ Device: tap, Managed: 'no' });
    expect(plans).toEqual([]);
  });

  test('says which network’s link is missing, and which file', async () => {
    const none = { links: [], addresses: [] };
    await expect(network(none).prepare(vmiWith({ masquerade: {} }), CARD, { default: 'tap' })).rejects.toThrow(
      'pod interface of network default is missing',
    );
    await expect(network().prepare(vmiWith({ bridge: {} }), CARD, { default: 'tap' })).rejects.toThrow(
      `failed plugging phase2 at nic 'eth0': open /proc/self/root${directory}/vif-cache-eth0.json: no such file or directory`,
    );
    fs.writeFileSync(path.join(directory, 'vif-cache-eth0.json'), '{"IP": {"IP": "10.2');
    await expect(network().prepare(vmiWith({ bridge: {} }), CARD, { default: 'tap' })).rejects.toThrow('DHCP file');
  });

  test('offers IPv6 where the pod has it', async () => {
    const addresses = [{ linkIndex: 3, family: 6, ip: 'fd00::5', prefixLength: 64 } as const];
    await network({ ...POD, addresses }).prepare(vmiWith({ masquerade: {} }), CARD, { default: 'tap' });
    expect(plans).toEqual([
      { v6: { bridge: 'k6t-eth0', bridgeMac: '02:00:00:00:00:00', clientAddress: 'fd10:0:2::2', nameservers: [] } },
    ]);
  });
});

describe('resolv.conf', () => {
  test('has defaults when it is empty', () => {
    expect(parseResolvConf('')).toEqual({ ipv4: ['8.8.8.8'], ipv6: [], search: ['cluster.local'] });
    expect(parseResolvConf('nameserver fd00::10\n')).toMatchObject({ ipv4: [], ipv6: ['fd00::10'] });
  });

  test('a subdomain’s service domain comes first, unless it is there', () => {
    const search = ['default.svc.cluster.local', 'svc.cluster.local'];
    expect(searchWithSubdomain(search, 'sub')).toEqual(['sub.default.svc.cluster.local', ...search]);
    expect(searchWithSubdomain(['sub.default.svc.x', ...search], '')).toEqual(['sub.default.svc.x', ...search]);
    expect(searchWithSubdomain(['example.com'], 'sub')).toEqual(['example.com']);
  });
});
