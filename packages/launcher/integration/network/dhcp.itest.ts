import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { NetworkNamespace, openBoundUdp, RouteSocket, runTool } from '@virtwire/host';
import type { VmiInterface } from '@virtwire/vm-model';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { parseDhcp6, renderDhcp6 } from '../../src/network/dhcp6-message.ts';

const ROOT = path.resolve(import.meta.dirname, '../../../..');
const GUEST_MAC = '02:00:00:00:aa:01';
const CAPABILITY = 'net_bind_service';
const SET_RIGHTS = '/usr/bin/setpriv';

/** As phase 1 leaves a pod, but with one end of a veth pair in the tap's place; the other end is the guest's card. */
let directory: string;
let pod: NetworkNamespace;
let guest: NetworkNamespace;
let launcher: ChildProcess | undefined;

beforeEach(async () => {
  directory = fs.mkdtempSync(path.join(os.tmpdir(), 'virtwire-dhcp-'));
  fs.chmodSync(directory, 0o755);
  [pod, guest] = ['pod', 'guest'].map((n) => NetworkNamespace.create(path.join(directory, n))) as [NetworkNamespace, NetworkNamespace]; // prettier-ignore
  fs.mkdirSync(path.join(directory, 'private'));
  fs.chownSync(path.join(directory, 'private'), 107, 107);
  const resolvConf = 'search default.svc.cluster.local cluster.local\nnameserver 10.96.0.10\n';
  fs.writeFileSync(path.join(directory, 'resolv.conf'), resolvConf);
  fs.writeFileSync(path.join(directory, 'seen'), UDHCPC_SCRIPT, { mode: 0o755 });
});

afterEach(async () => {
  if (launcher !== undefined) {
    launcher.stdin?.end();
    await once(launcher, 'exit');
  }
  launcher = undefined;
  for (const [name, namespace] of [
    ['pod', pod],
    ['guest', guest],
  ] as const) {
    namespace[Symbol.dispose]();
    NetworkNamespace.remove(path.join(directory, name));
  }
  fs.rmSync(directory, { recursive: true });
});

const UDHCPC_SCRIPT = `#!/bin/sh
[ "$1" = bound ] && env | sort > "$VIRTWIRE_SEEN"
exit 0
`;

async function makePod(bridgeAddress: string): Promise<void> {
  using routes = RouteSocket.open(pod);
  using inside = RouteSocket.open(guest);
  const indexOf = (name: string): number => routes.link(name)?.index ?? 0;
  await routes.createLink('k6t-eth0', 'bridge');
  await routes.createLink('eth0', 'bridge'); // stands for the pod link or the dummy
  await routes.createVeth('tap0', 'card', guest);
  await routes.setLink(indexOf('eth0'), { mac: '0a:58:0a:f4:00:05', mtu: 1450 });
  await routes.addAddress(indexOf('eth0'), '10.244.0.5/24');
  await routes.addAddress(indexOf('k6t-eth0'), bridgeAddress);
  await routes.setLink(indexOf('tap0'), { masterIndex: indexOf('k6t-eth0'), up: true });
  await routes.setLink(indexOf('k6t-eth0'), { up: true });
  await inside.setLink(inside.link('card')?.index ?? 0, { mac: GUEST_MAC, up: true });
}

/** Starts phase 2 as the sandbox starts the launcher; resolves with what it reports. */
async function startLauncher(iface: Omit<VmiInterface, 'name'>): Promise<Record<string, unknown>> {
  const vmi = {
    metadata: { namespace: 'default', name: 'testvmi', uid: 'u' },
    spec: {
      domain: { devices: { interfaces: [{ name: 'default', ...iface }] } },
      networks: [{ name: 'default', pod: {} }],
    },
  };
  const drop = ['--reuid=107', '--regid=107', '--clear-groups', `--bounding-set=-all,+${CAPABILITY}`];
  const keep = [`--inh-caps=-all,+${CAPABILITY}`, `--ambient-caps=+${CAPABILITY}`, '--no-new-privs'];
  const program = [
    process.execPath,
    '-C',
    '@virtwire/source',
    fileURLToPath(new URL('./dhcp-launcher.ts', import.meta.url)),
  ];
  const args = [path.join(directory, 'private'), path.join(directory, 'resolv.conf'), JSON.stringify(vmi)];
  const { child } = pod.run(() => ({
    child: spawn(SET_RIGHTS, [...drop, ...keep, ...program, ...args], {
      cwd: ROOT,
      stdio: ['pipe', 'pipe', 'inherit'],
    }),
  }));
  launcher = child;
  const lines = createInterface({ input: child.stdout });
  for await (const line of lines) return JSON.parse(line) as Record<string, unknown>;
  throw new Error('the launcher said nothing');
}

/** What a real DHCP client was told, by the names that it gives to options. */
async function askAsGuest(): Promise<Record<string, string>> {
  const seen = path.join(directory, 'lease');
  const script = path.join(directory, 'seen');
  const options = [
    '-i',
    'card',
    '-f',
    '-q',
    '-n',
    '-t',
    '5',
    '-T',
    '1',
    '-s',
    script,
    '-O',
    'search',
    '-O',
    'mtu',
    '-O',
    'staticroutes',
  ];
  await runTool('udhcpc', options, { network: guest, env: { ...process.env, VIRTWIRE_SEEN: seen }, timeoutMs: 60_000 });
  const lines = fs.readFileSync(seen, 'utf8').trim().split('\n');
  return Object.fromEntries(lines.map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]));
}

test('a guest behind masquerade gets its private address, as the launcher’s user with one capability', async () => {
  await makePod('10.0.2.1/24');
  const report = await startLauncher({ masquerade: {} });
  expect(report).toEqual({
    uid: 107,
    interfaces: [
      {
        Alias: { Name: 'default' },
        MAC: { MAC: '0a:58:0a:f4:00:05' },
        MTU: { Size: '1450' },
        Target: { Device: 'tap0', Managed: 'no' },
      },
    ],
  });
  expect(await askAsGuest()).toMatchObject({
    ip: '10.0.2.2',
    mask: '24',
    router: '10.0.2.1',
    serverid: '10.0.2.1',
    dns: '10.96.0.10',
    domain: 'default.svc.cluster.local',
    search: 'default.svc.cluster.local cluster.local',
    hostname: 'virt-launcher-testvmi',
    mtu: '1450',
    lease: '86313600',
  });
  expect(fs.readdirSync(path.join(directory, 'private'))).toEqual(['dhcp_started-eth0']);
});

test('FM-5.3 FM-5.4 a bridged guest gets the pod’s address, routes and MTU for its MAC only', async () => {
  await makePod('169.254.75.10/32');
  const address = { IP: '10.244.0.5', Mask: '////AA==' };
  const mac = (text: string): string => Buffer.from(text.replaceAll(':', ''), 'hex').toString('base64');
  const write = (clientMac: string): void =>
    fs.writeFileSync(
      path.join(directory, 'private/vif-cache-eth0.json'),
      JSON.stringify({
        IP: address,
        MAC: mac(clientMac),
        Gateway: '10.244.0.1',
        Routes: [{ Dst: null, Gw: '10.244.0.1' }],
        IPAMDisabled: false,
      }),
    );
  write(GUEST_MAC);
  await startLauncher({ bridge: {} });
  expect(await askAsGuest()).toMatchObject({
    ip: '10.244.0.5',
    mask: '24',
    router: '10.244.0.1',
    serverid: '169.254.75.10',
    staticroutes: '0.0.0.0/0 10.244.0.1',
    mtu: '1450',
  });
  using inside = RouteSocket.open(guest);
  await inside.setLink(inside.link('card')?.index ?? 0, { up: false });
  await inside.setLink(inside.link('card')?.index ?? 0, { mac: '02:00:00:00:aa:02', up: true });
  await expect(askAsGuest()).rejects.toThrow('udhcpc');
});

test('a pod without an address gets no server', async () => {
  await makePod('169.254.75.10/32');
  fs.writeFileSync(path.join(directory, 'private/vif-cache-eth0.json'), '{"IPAMDisabled":true}');
  await startLauncher({ bridge: {} });
  expect(fs.readdirSync(path.join(directory, 'private'))).toEqual(['vif-cache-eth0.json']);
});

test('a guest behind masquerade on an IPv6 pod is answered by its group address', async () => {
  await makePod('10.0.2.1/24');
  await runTool('sysctl', ['-qw', 'net.ipv6.conf.all.accept_dad=0'], { network: guest });
  using routes = RouteSocket.open(pod);
  await routes.addAddress(routes.link('eth0')?.index ?? 0, 'fd00::5/64');
  await startLauncher({ masquerade: {} });
  const solicit = renderDhcp6({
    kind: 1,
    transaction: Buffer.from([1, 2, 3]),
    options: [
      [1, Buffer.from('00030001020000' + '00aa01', 'hex')],
      [3, Buffer.from('0000aa010000000000000000', 'hex')],
    ],
  });
  const { opened } = guest.run(() => ({ opened: openBoundUdp({ family: 6, port: 546, device: 'card' }) }));
  const client = await opened;
  const ask = setInterval(() => {
    client.send(solicit, 547, 'ff02::1:2%card');
  }, 200);
  try {
    const [answer, from] = (await once(client, 'message', { signal: AbortSignal.timeout(60_000) })) as [Buffer, { address: string }]; // prettier-ignore
    const advertise = parseDhcp6(answer);
    expect(advertise?.kind).toBe(2);
    const address = advertise?.options.find(([code]) => code === 3)?.[1].subarray(16, 32);
    expect(address?.toString('hex')).toBe('fd100000000200000000000000000002');
    expect(from.address).toMatch(/^fe80::/);
  } finally {
    clearInterval(ask);
    client.close();
  }
});
