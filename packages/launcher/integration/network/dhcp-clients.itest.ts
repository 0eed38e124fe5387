import * as fs from 'node:fs';
import * as path from 'node:path';
import { RouteSocket, startProcess } from '@virtwire/host';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createDhcpPod, GUEST_MAC } from './dhcp-pod.ts';
import type { DhcpPod } from './dhcp-pod.ts';

let made: DhcpPod;

/** A guest with a static route beside the default one, an NTP server and a second search domain. */
const SPEC = {
  masquerade: {},
  dhcpOptions: { ntpServers: ['10.96.0.123'], privateOptions: [{ option: 240, value: 'private' }] },
};

/** Has a process space that ends with the command: dhclient would stay in the background. */
const ALONE = ['unshare', '--pid', '--fork', '--kill-child'];

beforeEach(async () => {
  made = await createDhcpPod('10.0.2.1/24', ['fd00::5/64']);
  await made.startLauncher(SPEC);
});

afterEach(async () => await made.remove());

function scratch(name: string, text: string, mode = 0o644): string {
  const file = path.join(made.directory, name);
  fs.writeFileSync(file, text, { mode });
  return file;
}

/** What a client's script was told: the environment of each of its calls, by the reason that the client gives. */
function seen(): Map<string, Readonly<Record<string, string>>> {
  const file = path.join(made.directory, 'seen.json');
  const calls = fs.existsSync(file) ? fs.readFileSync(file, 'utf8').trim().split('\n') : [];
  return new Map(
    calls.map((line) => {
      const env = JSON.parse(line) as Record<string, string>;
      return [env['reason'] ?? '', env];
    }),
  );
}

/** Stands for the script that a client calls to set the system up: writes down what it is told. */
function recorder(): string {
  const out = JSON.stringify(path.join(made.directory, 'seen.json'));
  return scratch(
    'recorder',
    `#!/usr/bin/python3
import json, os, subprocess
if os.environ.get("reason", "").startswith("PREINIT"):
    subprocess.run(["ip", "link", "set", os.environ["interface"], "up"], check=True)
print(json.dumps(dict(os.environ)), file=open(${out}, "a"))
`,
    0o755,
  );
}

/** A command in the guest's namespace with state directories of its own, and /sys read-only as in a container. */
function privately(command: string): readonly string[] {
  const mounts = 'mount -t tmpfs none /run; mkdir -p /run/systemd/netif /run/dhcpcd; mount -t sysfs -o ro none /sys';
  return ['unshare', '--mount', 'sh', '-c', `set -e; ${mounts}; ${command}`];
}

test('dhclient: lease, renewal with its old lease, and release', async () => {
  const config = scratch(
    'dhclient.conf',
    `option classless-routes code 121 = array of unsigned integer 8;
option own code 240 = text;
send host-name "guest";
request subnet-mask, routers, domain-name, domain-name-servers, domain-search, host-name, interface-mtu, ntp-servers,
  classless-routes, own;
`,
  );
  const files = ['-lf', path.join(made.directory, 'leases'), '-pf', path.join(made.directory, 'pid')];
  const ask = [...ALONE, 'dhclient', '-4', '-1', '-cf', config, '-sf', recorder(), ...files];
  await made.inGuest(...ask, 'card');
  const told = {
    new_ip_address: '10.0.2.2',
    new_subnet_mask: '255.255.255.0',
    new_routers: '10.0.2.1',
    new_dhcp_server_identifier: '10.0.2.1',
    new_domain_name_servers: '10.96.0.10',
    new_domain_name: 'default.svc.cluster.local',
    new_domain_search: 'default.svc.cluster.local. cluster.local.',
    new_host_name: 'virt-launcher-testvmi',
    new_interface_mtu: '1450',
    new_ntp_servers: '10.96.0.123',
    new_dhcp_lease_time: '86313600',
    new_own: 'private',
  };
  expect(seen().get('BOUND')).toMatchObject(told);
  await made.inGuest(...ask, 'card');
  expect(seen().get('REBOOT')).toMatchObject(told);
  await made.inGuest(...ask, '-r', 'card');
  expect([...seen().keys()]).toContain('RELEASE');
  fs.rmSync(path.join(made.directory, 'seen.json'));
  await made.inGuest(...ask, 'card');
  expect(seen().get('BOUND') ?? seen().get('REBOOT')).toMatchObject(told);
});

test('dhclient: IPv6 address, name servers, renewal and release', async () => {
  const files = ['-lf', path.join(made.directory, 'leases'), '-pf', path.join(made.directory, 'pid')];
  const config = scratch('dhclient.conf', 'send dhcp6.client-id 00:03:00:01:02:00:00:00:aa:01;\n');
  const ask = [...ALONE, 'dhclient', '-6', '-1', '-cf', config, '-sf', recorder(), ...files];
  await made.inGuest(...ask, 'card');
  const told = { new_ip6_address: 'fd10:0:2::2', new_dhcp6_name_servers: 'fd00:10:96::a', new_max_life: '86313600' };
  expect(seen().get('BOUND6')).toMatchObject(told);
  await made.inGuest(...ask, '-r', 'card');
  expect([...seen().keys()]).toContain('RELEASE6');
});

test('dhcpcd: lease and options', async () => {
  const config = scratch(
    'dhcpcd.conf',
    'option domain_name_servers,domain_search,interface_mtu,ntp_servers,host_name\n',
  );
  const flags = `--oneshot --nobackground --ipv4only --noarp --config ${config} --script ${recorder()} card`;
  await made.inGuest(...privately(`mkdir -p /run/db; mount --bind /run/db /var/lib/dhcpcd; dhcpcd ${flags}`));
  expect(seen().get('BOUND')).toMatchObject({
    new_ip_address: '10.0.2.2',
    new_subnet_cidr: '24',
    new_routers: '10.0.2.1',
    new_domain_name_servers: '10.96.0.10',
    new_domain_search: 'default.svc.cluster.local cluster.local',
    new_interface_mtu: '1450',
    new_ntp_servers: '10.96.0.123',
    new_host_name: 'virt-launcher-testvmi',
  });
});

test('systemd-networkd sets both addresses, the routes and the MTU', async () => {
  const network = `[Match]
MACAddress=${GUEST_MAC}
[Network]
DHCP=yes
IPv6AcceptRA=no
[DHCPv4]
UseMTU=yes
UseDomains=yes
UseNTP=yes
ClientIdentifier=mac
[DHCPv6]
WithoutRA=solicit
DUIDType=link-layer
`;
  scratch('card.network', network);
  const place = `mkdir -p /run/systemd/network; cp ${made.directory}/card.network /run/systemd/network/`;
  const keep = `chown -R systemd-network /run/systemd; ln -s /run ${made.directory}/run`;
  const [file = '', ...args] = privately(`${place}; ${keep}; exec /lib/systemd/systemd-networkd`);
  const { started } = made.guest.run(() => ({ started: startProcess(file, args) }));
  const networkd = await started;
  try {
    const addresses = async (): Promise<string> => await made.inGuest('ip', '-o', 'addr', 'show', 'dev', 'card');
    await expect
      .poll(addresses, { timeout: 60_000, interval: 200 })
      .toMatch(/inet 10\.0\.2\.2\/24 .*\n(.*\n)*.*inet6 fd10:0:2::2\/128/);
    expect(await made.inGuest('ip', 'route', 'show', 'default')).toMatch(
      /^default via 10\.0\.2\.1 dev card proto dhcp/,
    );
    expect(await made.inGuest('ip', 'link', 'show', 'dev', 'card')).toContain('mtu 1450');
    using inside = RouteSocket.open(made.guest);
    const lease = `/proc/${networkd.pid}/root/run/systemd/netif/leases/${inside.link('card')?.index}`;
    expect(fs.readFileSync(lease, 'utf8').split('\n')).toEqual(
      expect.arrayContaining([
        'ADDRESS=10.0.2.2',
        'NETMASK=255.255.255.0',
        'ROUTER=10.0.2.1',
        'SERVER_ADDRESS=10.0.2.1',
        'DNS=10.96.0.10',
        'NTP=10.96.0.123',
        'MTU=1450',
        'DOMAIN_SEARCH_LIST=default.svc.cluster.local cluster.local',
        'HOSTNAME=virt-launcher-testvmi',
        'OPTION_240=70726976617465',
      ]),
    );
  } finally {
    networkd.kill('SIGKILL');
    await networkd.exited;
  }
});
