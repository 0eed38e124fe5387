import * as fs from 'node:fs';
import * as path from 'node:path';
import { runTool } from '@virtwire/host';
import { createLogger } from '@virtwire/telemetry';
import type { VmiInterface } from '@virtwire/vm-model';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { hasErrorCode } from '../../src/errors.ts';
import type { Vmi } from '../../src/model.ts';
import { createNodeFiles, createPodFiles } from '../../src/prepare/network/files.ts';
import { openPodKernel } from '../../src/prepare/network/kernel.ts';
import { createNetworkPart } from '../../src/prepare/network/network-part.ts';
import type { NetworkPorts } from '../../src/prepare/network/ports.ts';
import type { NetworkPart } from '../../src/prepare/parts.ts';
import { createScratchPod, POD } from './scratch-pod.ts';
import type { ScratchPod } from './scratch-pod.ts';

const UID = 'c0ffee00-1111-4222-8333-444455556666';
const log = createLogger('virt-handler', { destination: { write: () => undefined } });

let pod: ScratchPod;

beforeEach(async () => {
  pod = await createScratchPod();
});

afterEach(async () => {
  await pod.remove();
});

function vmiWith(iface: Omit<VmiInterface, 'name'>): Vmi {
  return {
    metadata: { namespace: 'default', name: 'testvmi', uid: UID },
    spec: {
      domain: { devices: { interfaces: [{ name: 'default', ...iface }] } },
      networks: [{ name: 'default', pod: {} }],
    },
    status: { runtimeUser: 107, migrationTransport: 'Unix' },
  };
}

function partOf(ports?: NetworkPorts): NetworkPart {
  const options = {
    privateDir: pod.privateDir,
    ownPodIp: '10.244.0.2',
    bindingPlugins: () => ({}),
    portRanges: () => false,
  };
  return createNetworkPart({ log, ...(ports === undefined ? {} : { ports }) }, options);
}

function stateFile(): unknown {
  return JSON.parse(fs.readFileSync(path.join(pod.privateDir, 'network-info-cache', UID, 'default'), 'utf8'));
}

/** The real ports, with a kernel that dies before its n-th change (or script). */
function dyingPorts(after: number): NetworkPorts {
  let left = after;
  const step = (): void => {
    if (left === 0) throw new Error('killed');
    left -= 1;
  };
  return {
    nodeFiles: createNodeFiles(path.join(pod.privateDir, 'network-info-cache')),
    podFiles: (launcher) => createPodFiles(launcher.rootPath),
    openKernel(launcher) {
      const kernel = openPodKernel(launcher);
      return {
        ...kernel,
        async apply(op) {
          step();
          await kernel.apply(op);
        },
        async runNft(script) {
          step();
          await kernel.runNft(script);
        },
        [Symbol.dispose]: () => kernel[Symbol.dispose](),
      };
    },
  };
}

/** What the namespace is like, without what differs by chance: random addresses, counters, link negotiation. */
async function snapshot(): Promise<unknown> {
  const links = pod.routes.links().map(({ name, kind, isUp, mtu, masterIndex, learning, tun }) => {
    return { name, kind, isUp, mtu, isPort: masterIndex !== undefined, learning, tun };
  });
  const addresses = pod.routes
    .addresses()
    .filter((a) => a.family === 4)
    .map(({ ip, prefixLength }) => `${ip}/${prefixLength}`);
  const rules = await pod.run('nft', '--stateless', 'list', 'ruleset');
  return { links: links.toSorted((a, b) => a.name.localeCompare(b.name)), addresses: addresses.sort(), rules };
}

/** Cuts the set-up short before each of its changes, and lets the next one finish it. */
async function expectResumable(vmi: Vmi, check: () => void): Promise<void> {
  await partOf().setUp(vmi, ['default'], pod.launcher);
  const whole = await snapshot();
  for (let cuts = 0, wasCut = true; wasCut; cuts++) {
    await pod.remove();
    pod = await createScratchPod();
    wasCut = await partOf(dyingPorts(cuts))
      .setUp(vmi, ['default'], pod.launcher)
      .then(
        () => false,
        () => true,
      );
    await partOf().setUp(vmi, ['default'], pod.launcher);
    expect(await snapshot(), `cut before change ${cuts}`).toEqual(whole);
    expect(stateFile()).toMatchObject({ networkState: 2 });
    check();
  }
}

describe('masquerade', () => {
  const vmi = vmiWith({ masquerade: {} });

  test('makes bridge, tap and rules, and records it for whoever comes next', async () => {
    await partOf().setUp(vmi, ['default'], pod.launcher);
    const bridge = pod.routes.link('k6t-eth0');
    expect(bridge).toMatchObject({ kind: 'bridge', isUp: true, mac: '02:00:00:00:00:00', mtu: 1450 });
    const tap = { isUp: true, mtu: 1450, masterIndex: bridge?.index, tun: { isTap: true, uid: 107, gid: 107 } };
    expect(pod.routes.link('tap0')).toMatchObject(tap);
    expect(pod.routes.addresses()).toContainEqual({
      linkIndex: bridge?.index,
      family: 4,
      ip: '10.0.2.1',
      prefixLength: 24,
    });
    expect(await pod.run('cat', '/proc/sys/net/ipv4/ip_forward')).toBe('1\n');
    expect(await pod.run('cat', '/proc/sys/net/ipv4/conf/k6t-eth0/route_localnet')).toBe('1\n');
    expect(await pod.run('nft', 'list', 'chain', 'ip', 'nat', 'KUBEVIRT_PREINBOUND')).toContain('dnat to 10.0.2.2');
    const file = path.join(pod.privateDir, 'network-info-cache', UID, 'default');
    const expected = {
      iface: { name: 'default', masquerade: {} },
      podIP: POD.ipv4,
      podIPs: [POD.ipv4],
      networkState: 2,
    };
    expect(fs.readFileSync(file, 'utf8')).toBe(JSON.stringify(expected, undefined, 2));
    const { mode, uid, gid } = fs.statSync(file);
    expect([mode & 0o777, uid, gid, fs.statSync(path.dirname(file)).mode & 0o777]).toEqual([0o604, 107, 107, 0o750]);
    expect(await partOf().podInterface(vmi, 'default')).toEqual({ podIP: POD.ipv4, podIPs: [POD.ipv4] });
  });

  test('does nothing the second time, in the same process or another', async () => {
    await partOf().setUp(vmi, ['default'], pod.launcher);
    const before = await snapshot();
    await partOf().setUp(vmi, ['default'], pod.launcher);
    expect(await snapshot()).toEqual(before);
  });

  test('a set-up that was cut short at any point is finished by the next one, rules made once', async () => {
    await expectResumable(vmi, () => undefined);
  });

  test('a half done set-up of a node agent without a journal is a critical error', async () => {
    const directory = path.join(pod.privateDir, 'network-info-cache', UID);
    fs.mkdirSync(directory, { recursive: true });
    fs.writeFileSync(path.join(directory, 'default'), '{"networkState": 1}');
    const work = partOf().setUp(vmi, ['default'], pod.launcher);
    await expect(work).rejects.toThrow('setup failed, err: Critical network error: preparation for networks');
    await expect(work).rejects.toSatisfy((error: unknown) => hasErrorCode(error, 'CriticalNetwork'));
  });

  test('FM-5.1 sets another pod of the same VMI up anew', async () => {
    await partOf().setUp(vmi, ['default'], pod.launcher);
    const second = await createScratchPod();
    try {
      const options = {
        privateDir: pod.privateDir,
        ownPodIp: undefined,
        bindingPlugins: () => ({}),
        portRanges: () => false,
      };
      await createNetworkPart({ log }, options).setUp(vmi, ['default'], second.launcher);
      expect(second.routes.link('tap0')?.tun?.uid).toBe(107);
      expect(await second.run('nft', 'list', 'ruleset')).toContain('KUBEVIRT_PREINBOUND');
    } finally {
      await second.remove();
    }
  });

  test('FM-5.7 does without IPv6 in the pod', async () => {
    await pod.run('sysctl', '-qw', 'net.ipv6.conf.all.disable_ipv6=1');
    await partOf().setUp(vmi, ['default'], pod.launcher);
    expect(await pod.run('nft', 'list', 'tables')).toBe('table ip nat\n');
  });

  test('refuses a launcher that lives in the node’s own network, and changes nothing there', async () => {
    const links = async (): Promise<string> =>
      (await runTool('ip', ['-j', 'addr'])).stdout.replaceAll(/"valid_life_time":\d+|"preferred_life_time":\d+/g, '');
    const before = await links();
    const work = partOf().setUp(vmi, ['default'], { ...pod.launcher, pid: process.pid });
    await expect(work).rejects.toThrow('has no network namespace of its own');
    expect(await links()).toBe(before);
    expect(fs.existsSync(path.join(pod.privateDir, 'network-info-cache', UID))).toBe(false);
  });

  test('tear-down forgets the VMI', async () => {
    const part = partOf();
    await part.setUp(vmi, ['default'], pod.launcher);
    await part.podInterface(vmi, 'default');
    await part.tearDown(vmi);
    await part.tearDown(vmi);
    expect(fs.readdirSync(path.join(pod.privateDir, 'network-info-cache'))).toEqual([]);
    expect(await part.podInterface(vmi, 'default')).toBeUndefined();
  });
});

describe('bridge', () => {
  const vmi = vmiWith({ bridge: {} });

  test('puts the pod link on a bridge with the tap and leaves a stand-in with its name, MAC and address', async () => {
    await partOf().setUp(vmi, ['default'], pod.launcher);
    const bridge = pod.routes.link('k6t-eth0');
    const nic = pod.routes.link('eth0-nic');
    const standIn = pod.routes.link('eth0');
    expect(nic).toMatchObject({ kind: 'veth', isUp: true, masterIndex: bridge?.index, learning: false });
    expect(pod.routes.link('tap0')).toMatchObject({ isUp: true, mtu: 1450, masterIndex: bridge?.index });
    expect(standIn).toMatchObject({ isUp: false, mac: POD.mac, mtu: 1450 });
    const ipv4 = pod.routes.addresses().filter((a) => a.family === 4 && a.ip !== '127.0.0.1');
    expect(ipv4).toEqual([
      { linkIndex: bridge?.index, family: 4, ip: '169.254.75.10', prefixLength: 32 },
      { linkIndex: standIn?.index, family: 4, ip: POD.ipv4, prefixLength: 24 },
    ]);
    expect(nic?.mac).not.toBe(POD.mac);
    expect(await pod.run('cat', '/proc/sys/net/ipv4/conf/all/arp_ignore')).toBe('1\n');
  });

  test('tells the launcher what its DHCP server has to say, old launchers too', async () => {
    await partOf().setUp(vmi, ['default'], pod.launcher);
    const directory = path.join(pod.root, 'run/kubevirt-private');
    const read = (name: string): Record<string, unknown> =>
      JSON.parse(fs.readFileSync(path.join(directory, name), 'utf8')) as Record<string, unknown>;
    expect(read('vif-cache-eth0.json')).toMatchObject({
      IP: { IP: POD.ipv4, Mask: '////AA==' },
      MAC: 'ClgK9AAF',
      Gateway: POD.gateway4,
      IPAMDisabled: false,
      Routes: [{ Dst: null, Gw: POD.gateway4 }],
    });
    expect(read('interface-cache-default.json')).toMatchObject({ MAC: { MAC: POD.mac } });
    expect(fs.statSync(path.join(directory, 'vif-cache-eth0.json')).uid).toBe(107);
  });

  test('a set-up that was cut short at any point is finished by the next one', async () => {
    await expectResumable(vmi, () => {
      expect(pod.routes.link('eth0')?.mac).toBe(POD.mac);
    });
  });

  test('FM-5.9 ten plugs and unplugs leave the same links and files', async () => {
    const part = partOf();
    const blue = { name: 'blue', multus: { networkName: 'default/blue' } };
    const link = 'pod16477688c0e';
    const withBlue = (state?: 'absent'): Vmi => ({
      ...vmi,
      spec: {
        domain: {
          devices: { interfaces: [{ name: 'blue', bridge: {}, ...(state === undefined ? {} : { state }) }] },
        },
        networks: [blue],
      },
    });
    const list = (): string[] =>
      pod.routes
        .links()
        .map((l) => l.name)
        .sort();
    const before = list();
    for (let i = 0; i < 10; i++) {
      await pod.routes.createVeth(link, 'far', pod.outside);
      await part.setUp(withBlue(), ['blue'], pod.launcher);
      expect(list()).toContain('tap16477688c0e');
      await part.setUp(withBlue('absent'), ['blue'], pod.launcher);
      await pod.routes.deleteLink(pod.routes.link('16477688c0e-nic')?.index ?? 0); // as the CNI plugin does
    }
    expect(list()).toEqual(before);
    expect(fs.readdirSync(path.join(pod.root, 'run/kubevirt-private'))).toEqual([]);
  });

  test('FM-13.1 a link in the launcher’s tree does not lead outside of it', async () => {
    const outside = path.join(pod.privateDir, 'outside');
    fs.mkdirSync(outside, { recursive: true });
    fs.rmdirSync(path.join(pod.root, 'run/kubevirt-private'));
    fs.symlinkSync(outside, path.join(pod.root, 'run/kubevirt-private'));
    await expect(partOf().setUp(vmi, ['default'], pod.launcher)).rejects.toThrow('is a link');
    expect(fs.readdirSync(outside)).toEqual([]);
  });
});
