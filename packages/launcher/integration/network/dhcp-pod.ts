import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { NetworkNamespace, RouteSocket, runTool } from '@virtwire/host';
import type { VmiInterface } from '@virtwire/vm-model';

const READABLE_CHECKOUT = path.resolve(import.meta.dirname, '../support/readable-checkout.sh');
const CAPABILITY = 'net_bind_service';
const SET_RIGHTS = '/usr/bin/setpriv';

/** MAC of the guest's card. */
export const GUEST_MAC = '02:00:00:00:aa:01';

/** A pod as phase 1 leaves it, but with one end of a veth pair in the tap's place; the other end is the guest's card. */
export interface DhcpPod {
  readonly directory: string;
  readonly privateDir: string;
  readonly pod: NetworkNamespace;
  readonly guest: NetworkNamespace;
  /** Runs phase 2 with the launcher's rights; resolves with what it reports. */
  startLauncher(iface: Omit<VmiInterface, 'name'>): Promise<Record<string, unknown>>;
  /** Output of a command in the guest's namespace. */
  inGuest(...command: readonly string[]): Promise<string>;
  remove(): Promise<void>;
}

/** Makes the pod. `podAddresses` are those of the pod link, beside the IPv4 one that is always there. */
export async function createDhcpPod(bridgeAddress: string, podAddresses: readonly string[] = []): Promise<DhcpPod> {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'virtwire-dhcp-'));
  fs.chmodSync(directory, 0o755);
  const names = ['pod', 'guest'].map((name) => path.join(directory, name)) as [string, string];
  const [pod, guest] = [NetworkNamespace.create(names[0]), NetworkNamespace.create(names[1])];
  const privateDir = path.join(directory, 'private');
  fs.mkdirSync(privateDir);
  fs.chownSync(privateDir, 107, 107);
  const resolvConf =
    'search default.svc.cluster.local cluster.local\nnameserver 10.96.0.10\nnameserver fd00:10:96::a\n';
  fs.writeFileSync(path.join(directory, 'resolv.conf'), resolvConf);
  const inGuest = async (file = '', ...args: readonly string[]): Promise<string> =>
    (await runTool(file, args, { network: guest, timeoutMs: 60_000 })).stdout;
  // Without it an address is not usable for seconds after it was set.
  await inGuest('sysctl', '-qw', 'net.ipv6.conf.all.accept_dad=0', 'net.ipv6.conf.default.accept_dad=0');
  await connect(pod, guest, bridgeAddress, podAddresses);
  let launcher: ChildProcess | undefined;
  return {
    directory,
    privateDir,
    pod,
    guest,
    inGuest,
    async startLauncher(iface) {
      const started = runLauncher(pod, directory, privateDir, iface);
      launcher = started.child;
      return await started.report;
    },
    async remove() {
      launcher?.stdin?.end();
      if (launcher?.exitCode === null) await once(launcher, 'exit');
      for (const namespace of [pod, guest]) namespace[Symbol.dispose]();
      for (const name of names) NetworkNamespace.remove(name);
      fs.rmSync(directory, { recursive: true });
    },
  };
}

async function connect(
  pod: NetworkNamespace,
  guest: NetworkNamespace,
  bridgeAddress: string,
  podAddresses: readonly string[],
): Promise<void> {
  using routes = RouteSocket.open(pod);
  using inside = RouteSocket.open(guest);
  const indexOf = (name: string): number => routes.link(name)?.index ?? 0;
  await routes.createLink('k6t-eth0', 'bridge');
  await routes.createLink('eth0', 'bridge'); // stands for the pod link or the dummy
  await routes.createVeth('tap0', 'card', guest);
  await routes.setLink(indexOf('eth0'), { mac: '0a:58:0a:f4:00:05', mtu: 1450 });
  for (const address of ['10.244.0.5/24', ...podAddresses]) await routes.addAddress(indexOf('eth0'), address);
  await routes.addAddress(indexOf('k6t-eth0'), bridgeAddress);
  await routes.setLink(indexOf('tap0'), { masterIndex: indexOf('k6t-eth0'), up: true });
  await routes.setLink(indexOf('k6t-eth0'), { up: true });
  await inside.setLink(inside.link('card')?.index ?? 0, { mac: GUEST_MAC, up: true });
}

function runLauncher(
  pod: NetworkNamespace,
  directory: string,
  privateDir: string,
  iface: Omit<VmiInterface, 'name'>,
): { child: ChildProcess; report: Promise<Record<string, unknown>> } {
  const vmi = {
    metadata: { namespace: 'default', name: 'testvmi', uid: 'u' },
    spec: {
      domain: { devices: { interfaces: [{ name: 'default', ...iface }] } },
      networks: [{ name: 'default', pod: {} }],
    },
  };
  const drop = ['--reuid=107', '--regid=107', '--clear-groups', `--bounding-set=-all,+${CAPABILITY}`];
  const keep = [`--inh-caps=-all,+${CAPABILITY}`, `--ambient-caps=+${CAPABILITY}`, '--no-new-privs'];
  const main = fileURLToPath(new URL('./dhcp-launcher.ts', import.meta.url));
  const program = [process.execPath, '-C', '@virtwire/source', main];
  const args = [privateDir, path.join(directory, 'resolv.conf'), JSON.stringify(vmi)];
  const readable = ['--mount', 'sh', READABLE_CHECKOUT, path.join(directory, 'checkout')];
  const { child } = pod.run(() => ({
    child: spawn('unshare', [...readable, SET_RIGHTS, ...drop, ...keep, ...program, ...args], {
      stdio: ['pipe', 'pipe', 'inherit'],
    }),
  }));
  return { child, report: firstLine(child.stdout) };
}

async function firstLine(output: NodeJS.ReadableStream): Promise<Record<string, unknown>> {
  for await (const line of createInterface({ input: output })) return JSON.parse(line) as Record<string, unknown>;
  throw new Error('the launcher said nothing');
}
