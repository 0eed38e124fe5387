import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { errnoOf, createTap, NetworkNamespace, readSysctls, RouteSocket, runTool, writeSysctls } from '../src/index.ts';

let directory: string;
let scratch: { namespace: NetworkNamespace };

beforeEach(() => {
  directory = fs.mkdtempSync(path.join(os.tmpdir(), 'virtwire-host-net-'));
  scratch = { namespace: NetworkNamespace.create(path.join(directory, 'net')) };
});

afterEach(() => {
  scratch.namespace[Symbol.dispose]();
  NetworkNamespace.remove(path.join(directory, 'net'));
  fs.rmdirSync(directory);
});

describe('a network namespace', () => {
  test('is entered for the action only', () => {
    using home = NetworkNamespace.own();
    const inside = scratch.namespace.run(() => {
      using now = NetworkNamespace.own();
      return now.inode;
    });
    using after = NetworkNamespace.own();
    expect(inside).toBe(scratch.namespace.inode);
    expect(after.inode).toBe(home.inode);
    expect(inside).not.toBe(home.inode);
  });

  test('goes away with its file, and removing it twice is no error', () => {
    const file = path.join(directory, 'other');
    NetworkNamespace.create(file)[Symbol.dispose]();
    NetworkNamespace.remove(file);
    NetworkNamespace.remove(file);
    expect(fs.existsSync(file)).toBe(false);
    expect(fs.readFileSync('/proc/self/mountinfo', 'utf8')).not.toContain(file);
  });

  test('is left again when the action throws, and refuses an action that waits', () => {
    using home = NetworkNamespace.own();
    expect(() =>
      scratch.namespace.run(() => {
        throw new Error('inside');
      }),
    ).toThrow('inside');
    expect(() => scratch.namespace.run(async () => undefined)).toThrow('must not wait');
    using after = NetworkNamespace.own();
    expect(after.inode).toBe(home.inode);
  });

  test('is what a tool runs in', async () => {
    const { stdout } = await runTool('ip', ['-j', 'link'], { network: scratch.namespace });
    expect((JSON.parse(stdout) as { ifname: string }[]).map((l) => l.ifname)).toEqual(['lo']);
  });

  test('has settings of its own', () => {
    const setting = 'net/ipv4/ip_forward';
    using home = NetworkNamespace.own();
    const [before] = readSysctls(home, [setting]);
    writeSysctls(scratch.namespace, [[setting, '1']]);
    expect(readSysctls(scratch.namespace, [setting, 'net/ipv4/nothing'])).toEqual(['1', undefined]);
    expect(readSysctls(home, [setting])).toEqual([before]);
  });
});

describe('links by netlink', () => {
  test('are made, changed and listed as iproute2 shows them', async () => {
    using routes = RouteSocket.open(scratch.namespace);
    await routes.createVeth('eth0', 'peer0');
    await routes.createLink('br0', 'bridge');
    const [eth, bridge] = [routes.link('eth0')?.index ?? 0, routes.link('br0')?.index ?? 0];
    await routes.setLink(eth, { mac: '0a:58:0a:f4:00:05', mtu: 1450, masterIndex: bridge, up: true });
    await routes.setLink(routes.link('peer0')?.index ?? 0, { up: true });
    await routes.setLink(bridge, { up: true });
    await routes.setLearning(eth, false);
    await routes.addAddress(bridge, '10.0.2.1/24');
    await routes.addAddress(bridge, 'fd10:0:2::1/120');
    await routes.addRoute({ destination: '0.0.0.0/0', gateway: '10.0.2.9', linkIndex: bridge });

    // The kernel tells the state of a link a little after its changes.
    await expect.poll(() => routes.link('eth0')?.operationalState, { timeout: 10_000 }).toBe('up');
    expect(routes.link('eth0')).toMatchObject({
      kind: 'veth',
      isUp: true,
      operationalState: 'up',
      mac: '0a:58:0a:f4:00:05',
      mtu: 1450,
      masterIndex: bridge,
      learning: false,
    });
    const ofBridge = routes.addresses().filter((a) => a.linkIndex === bridge);
    expect(ofBridge).toContainEqual({ linkIndex: bridge, family: 4, ip: '10.0.2.1', prefixLength: 24 });
    expect(ofBridge).toContainEqual({ linkIndex: bridge, family: 6, ip: 'fd10:0:2::1', prefixLength: 120 });
    expect(routes.routes()[0]).toEqual({
      family: 4,
      isUnicast: true,
      destination: '0.0.0.0/0',
      gateway: '10.0.2.9',
      linkIndex: bridge,
    });
    const { stdout } = await runTool('ip', ['-j', '-d', 'link', 'show', 'eth0'], { network: scratch.namespace });
    expect(JSON.parse(stdout)).toMatchObject([
      { address: '0a:58:0a:f4:00:05', master: 'br0', linkinfo: { info_slave_data: { learning: false } } },
    ]);
  });

  test('fail with the kernel’s name for the reason', async () => {
    using routes = RouteSocket.open(scratch.namespace);
    const lo = routes.link('lo')?.index ?? 0;
    await routes.createLink('br0', 'bridge');
    const reason = async (work: Promise<void>): Promise<string | undefined> =>
      work.then(
        () => undefined,
        (error: unknown) => errnoOf(error),
      );
    expect(await reason(routes.createLink('br0', 'bridge'))).toBe('EEXIST');
    expect(await reason(routes.deleteLink(9999))).toBe('ENODEV');
    await routes.addAddress(lo, '10.1.1.1/32');
    expect(await reason(routes.addAddress(lo, '10.1.1.1/32'))).toBe('EEXIST');
    await routes.deleteAddress(lo, '10.1.1.1/32');
    expect(await reason(routes.deleteAddress(lo, '10.1.1.1/32'))).toBe('EADDRNOTAVAIL');
  });

  test('many changes and lists at a time each get their own answer', async () => {
    using routes = RouteSocket.open(scratch.namespace);
    const lo = routes.link('lo')?.index ?? 0;
    const made = Array.from({ length: 40 }, async (_, i) => {
      await routes.addAddress(lo, `10.9.0.${i}/32`);
      routes.links();
    });
    const refused = Array.from({ length: 40 }, async (_, i) => {
      await expect(routes.deleteLink(5_000 + i)).rejects.toMatchObject({ errno: 'ENODEV' });
    });
    await Promise.all([...made, ...refused]);
    expect(routes.addresses().filter((a) => a.ip.startsWith('10.9.0.'))).toHaveLength(40);
  });

  test('a tap belongs to its user and a second one of that name is refused', async () => {
    createTap(scratch.namespace, { name: 'tap0', uid: 107, gid: 108, queues: 0 });
    createTap(scratch.namespace, { name: 'tap1', uid: 0, gid: 0, queues: 4 });
    using routes = RouteSocket.open(scratch.namespace);
    expect(routes.link('tap0')?.tun).toEqual({ isTap: true, uid: 107, gid: 108 });
    expect(routes.link('tap1')?.tun).toEqual({ isTap: true, uid: 0, gid: 0 });
    expect(() => createTap(scratch.namespace, { name: 'tap0', uid: 107, gid: 107, queues: 0 })).toThrow(/tap0/);
  });
});
