import * as fs from 'node:fs';
import * as path from 'node:path';
import { once } from 'node:events';
import { openBoundUdp, RouteSocket, runTool } from '@virtwire/host';
import { afterEach, expect, test } from 'vitest';
import { parseDhcp6, renderDhcp6 } from '../../src/network/dhcp6-message.ts';
import { createDhcpPod, GUEST_MAC } from './dhcp-pod.ts';
import type { DhcpPod } from './dhcp-pod.ts';

let pod: DhcpPod | undefined;

afterEach(async () => {
  await pod?.remove();
  pod = undefined;
});

async function makePod(...addresses: [bridge: string, ...pod: string[]]): Promise<DhcpPod> {
  const [bridge, ...more] = addresses;
  pod = await createDhcpPod(bridge, more);
  fs.writeFileSync(path.join(pod.directory, 'seen'), UDHCPC_SCRIPT, { mode: 0o755 });
  return pod;
}

const UDHCPC_SCRIPT = `#!/bin/sh
[ "$1" = bound ] && env | sort > "$VIRTWIRE_SEEN"
exit 0
`;

/** What a real DHCP client was told, by the names that it gives to options. */
async function askAsGuest({ directory, guest }: DhcpPod): Promise<Record<string, string>> {
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
  const made = await makePod('10.0.2.1/24');
  const report = await made.startLauncher({ masquerade: {} });
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
  expect(await askAsGuest(made)).toMatchObject({
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
  expect(fs.readdirSync(made.privateDir)).toEqual(['dhcp_started-eth0']);
});

test('FM-5.3 FM-5.4 a bridged guest gets the pod’s address, routes and MTU for its MAC only', async () => {
  const made = await makePod('169.254.75.10/32');
  const address = { IP: '10.244.0.5', Mask: '////AA==' };
  const mac = (text: string): string => Buffer.from(text.replaceAll(':', ''), 'hex').toString('base64');
  const write = (clientMac: string): void =>
    fs.writeFileSync(
      path.join(made.privateDir, 'vif-cache-eth0.json'),
      JSON.stringify({
        IP: address,
        MAC: mac(clientMac),
        Gateway: '10.244.0.1',
        Routes: [{ Dst: null, Gw: '10.244.0.1' }],
        IPAMDisabled: false,
      }),
    );
  write(GUEST_MAC);
  await made.startLauncher({ bridge: {} });
  expect(await askAsGuest(made)).toMatchObject({
    ip: '10.244.0.5',
    mask: '24',
    router: '10.244.0.1',
    serverid: '169.254.75.10',
    staticroutes: '0.0.0.0/0 10.244.0.1',
    mtu: '1450',
  });
  using inside = RouteSocket.open(made.guest);
  await inside.setLink(inside.link('card')?.index ?? 0, { up: false });
  await inside.setLink(inside.link('card')?.index ?? 0, { mac: '02:00:00:00:aa:02', up: true });
  await expect(askAsGuest(made)).rejects.toThrow('udhcpc');
});

test('a pod without an address gets no server', async () => {
  const made = await makePod('169.254.75.10/32');
  fs.writeFileSync(path.join(made.privateDir, 'vif-cache-eth0.json'), '{"IPAMDisabled":true}');
  await made.startLauncher({ bridge: {} });
  expect(fs.readdirSync(made.privateDir)).toEqual(['vif-cache-eth0.json']);
});

test('a guest behind masquerade on an IPv6 pod is answered by its group address', async () => {
  const made = await makePod('10.0.2.1/24', 'fd00::5/64');
  await made.startLauncher({ masquerade: {} });
  const solicit = renderDhcp6({
    kind: 1,
    transaction: Buffer.from([1, 2, 3]),
    options: [
      [1, Buffer.from('00030001020000' + '00aa01', 'hex')],
      [3, Buffer.from('0000aa010000000000000000', 'hex')],
    ],
  });
  const { opened } = made.guest.run(() => ({ opened: openBoundUdp({ family: 6, port: 546, device: 'card' }) }));
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
