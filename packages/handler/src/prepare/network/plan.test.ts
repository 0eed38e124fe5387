import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Vmi } from '../../model.ts';
import { interfacesOf } from './binding.ts';
import { composeDesired } from './compose.ts';
import { planNetwork } from './plan.ts';
import type { NetworkOp } from './plan.ts';
import type { InterfaceState, NetworkAddress, PodNetwork } from './state.ts';

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

const lo: InterfaceState = {
  name: 'lo',
  index: 1,
  type: 'device',
  state: 'unknown',
  mtu: 65536,
  IPv4: { enabled: true, address: [{ IP: '127.0.0.1', 'prefix-length': 8 }] },
  IPv6: { enabled: false },
  'linux-stack': {},
  Metadata: null,
};

function podNetwork(fields: { readonly v4: boolean; readonly v6: boolean; readonly mtu: number }): PodNetwork {
  const family = (has: boolean, addresses: readonly NetworkAddress[]): InterfaceState['IPv4'] =>
    has ? { enabled: true, address: addresses } : { enabled: false };
  const eth0: InterfaceState = {
    name: 'eth0',
    index: 3,
    type: 'veth',
    state: 'up',
    'mac-address': '0a:58:0a:f4:00:05',
    mtu: fields.mtu,
    IPv4: family(fields.v4, [{ IP: '10.244.0.5', 'prefix-length': 24 }]),
    IPv6: family(fields.v6, [{ IP: 'fd00::5', 'prefix-length': 64 }]),
    'linux-stack': {},
    Metadata: null,
  };
  return { interfaces: [lo, eth0], routes: {}, 'linux-stack': { ipv4: {}, ipv6: {} } };
}

function vmiWith(iface: object): Vmi {
  return {
    metadata: { namespace: 'ns', name: 'vm', uid: 'u' },
    spec: {
      domain: { devices: { interfaces: [{ name: 'default', ...iface }] } },
      networks: [{ name: 'default', pod: {} }],
    },
    status: { runtimeUser: 107 },
  };
}

/** What the kernel makes of a plan. */
function applied(network: PodNetwork, ops: readonly NetworkOp[]): PodNetwork {
  const links = network.interfaces.map((l) => structuredClone(l) as Mutable<InterfaceState>);
  const settings: Record<string, string> = {};
  let next = Math.max(...links.map((l) => l.index ?? 0)) + 1;
  const find = (name: string): Mutable<InterfaceState> => {
    const link = links.find((l) => l.name === name);
    if (link === undefined) throw new Error(`no link ${name}`);
    return link;
  };
  for (const op of ops) {
    if (op.kind === 'sysctl') settings[op.path] = op.value;
    else if (op.kind === 'linkDelete') links.splice(links.indexOf(find(op.name)), 1);
    else if (op.kind === 'linkAdd' || op.kind === 'createTap') {
      const isTap = op.kind === 'createTap';
      const mac = `0e:00:00:00:00:${next % 100}`.padEnd(17, '0');
      const mtu = isTap ? (op.tap.mtu ?? 1500) : 1500;
      const plain = { IPv4: { enabled: false }, IPv6: { enabled: false }, 'linux-stack': {}, Metadata: null };
      links.push({
        name: op.name,
        index: next++,
        type: isTap ? 'tap' : op.type,
        state: 'down',
        'mac-address': mac,
        mtu,
        ...plain,
      });
    } else change(find(op.name), op, find);
  }
  const stack = network['linux-stack'];
  for (const [path, value] of Object.entries(settings)) {
    const link = /conf\/(.+)\/route_localnet$/.exec(path)?.[1];
    if (link !== undefined)
      find(link)['linux-stack'] = { ...find(link)['linux-stack'], 'ip4-route-local-net': value === '1' };
  }
  return {
    interfaces: links,
    routes: {},
    'linux-stack': {
      ipv4: {
        ...stack.ipv4,
        ...('net/ipv4/ip_forward' in settings ? { forwarding: true } : {}),
        ...('net/ipv4/conf/all/arp_ignore' in settings ? { 'arp-ignore': 1 } : {}),
      },
      ipv6: { ...stack.ipv6, ...('net/ipv6/conf/all/forwarding' in settings ? { forwarding: true } : {}) },
    },
  };
}

function change(link: Mutable<InterfaceState>, op: NetworkOp, find: (name: string) => InterfaceState): void {
  if (op.kind === 'linkRename') link.name = op.to;
  else if (op.kind === 'linkUp') link.state = 'up';
  else if (op.kind === 'linkDown') link.state = 'down';
  else if (op.kind === 'linkSetMac') link['mac-address'] = op.mac;
  else if (op.kind === 'linkCopyMac') link['mac-address'] = find(op.from)['mac-address'] ?? '';
  else if (op.kind === 'linkSetMtu') link.mtu = op.mtu;
  else if (op.kind === 'linkSetMaster') [link.controller, link['linux-stack']] = [op.bridge, { 'port-learning': true }];
  else if (op.kind === 'linkLearningOff') link['linux-stack'] = { 'port-learning': false };
  else if (op.kind === 'addrAdd' || op.kind === 'addrDelete') {
    const [IP = '', length = ''] = op.cidr.split('/');
    const key = IP.includes(':') ? 'IPv6' : 'IPv4';
    const rest = (link[key].address ?? []).filter((a) => a.IP !== IP);
    const address = op.kind === 'addrAdd' ? [...rest, { IP, 'prefix-length': Number(length) }] : rest;
    link[key] = address.length === 0 ? { enabled: false } : { enabled: true, address };
  }
  if (op.kind === 'linkDown') link.IPv6 = { enabled: false };
}

function planFor(vmi: Vmi, network: PodNetwork): readonly NetworkOp[] {
  const interfaces = interfacesOf(vmi, ['default'], {});
  return planNetwork(network, composeDesired({ vmi, interfaces, current: network, launcherPid: 7 }));
}

const pods = fc.record({ v4: fc.boolean(), v6: fc.boolean(), mtu: fc.integer({ min: 68, max: 9000 }) });

describe('a plan', () => {
  test.each(['masquerade', 'bridge'])('reaches a state that needs no plan: %s', (binding) => {
    fc.assert(
      fc.property(pods, (fields) => {
        const vmi = vmiWith({ [binding]: {} });
        const before = podNetwork(fields);
        const after = applied(before, planFor(vmi, before));
        expect(planFor(vmi, after)).toEqual([]);
      }),
    );
  });

  test('can be finished from wherever it stopped', () => {
    fc.assert(
      fc.property(pods, fc.constantFrom('masquerade', 'bridge'), fc.nat(30), (fields, binding, cut) => {
        const vmi = vmiWith({ [binding]: {} });
        const before = podNetwork(fields);
        const interfaces = interfacesOf(vmi, ['default'], {});
        const desired = composeDesired({ vmi, interfaces, current: before, launcherPid: 7 });
        const plan = planNetwork(before, desired);
        const half = applied(before, plan.slice(0, cut));
        const whole = applied(half, planNetwork(half, desired));
        expect(planNetwork(whole, desired)).toEqual([]);
        expect(whole.interfaces.map((l) => l.name).sort()).toEqual(
          applied(before, plan)
            .interfaces.map((l) => l.name)
            .sort(),
        );
      }),
    );
  });

  test('renames the pod link before its stand-in takes the name, and makes taps before they join', () => {
    const network = podNetwork({ v4: true, v6: true, mtu: 1450 });
    const ops = planFor(vmiWith({ bridge: {} }), network).map((op) => `${op.kind} ${'name' in op ? op.name : op.path}`);
    expect(ops.indexOf('linkRename eth0')).toBeLessThan(ops.indexOf('linkAdd eth0'));
    expect(ops.indexOf('linkDown eth0')).toBeLessThan(ops.indexOf('linkRename eth0'));
    expect(ops.indexOf('createTap tap0')).toBeLessThan(ops.indexOf('linkSetMaster tap0'));
  });

  test('refuses a link of another type before anything changes', () => {
    const network = podNetwork({ v4: true, v6: false, mtu: 1450 });
    const taken = { ...lo, name: 'k6t-eth0', index: 9, type: 'veth' };
    const crowded = { ...network, interfaces: [...network.interfaces, taken] };
    expect(() => planFor(vmiWith({ masquerade: {} }), crowded)).toThrow(
      'type collision on link k6t-eth0: actual veth, requested bridge',
    );
  });

  test('FM-5.5 a tap has a queue per vCPU, at most 256', () => {
    const network = podNetwork({ v4: true, v6: false, mtu: 1450 });
    const queues = (cores: number): number | undefined => {
      const vmi = vmiWith({ masquerade: {} });
      const domain = { cpu: { cores }, devices: { ...vmi.spec.domain.devices, networkInterfaceMultiqueue: true } };
      const ops = planFor({ ...vmi, spec: { ...vmi.spec, domain } }, network);
      return ops.flatMap((op) => (op.kind === 'createTap' ? [op.tap.queues] : []))[0];
    };
    expect([queues(1), queues(4), queues(300)]).toEqual([1, 4, 256]);
  });
});
