import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { NetworkNamespace, RouteSocket, runTool, startProcess } from '@virtwire/host';
import type { Isolation } from '../../src/prepare/parts.ts';

/** A pod's network namespace with a launcher in it, and the other end of its link. */
export interface ScratchPod {
  readonly launcher: Isolation;
  readonly namespace: NetworkNamespace;
  readonly outside: NetworkNamespace;
  readonly routes: RouteSocket;
  /** Files of the launcher's root, and the node agent's private directory. */
  readonly root: string;
  readonly privateDir: string;
  /** Output of a command in the pod's namespace. */
  run(...command: readonly string[]): Promise<string>;
  remove(): Promise<void>;
}

/** Addresses of the pod link `eth0`; the gateways are the outside end. */
export const POD = {
  ipv4: '10.244.0.5',
  gateway4: '10.244.0.1',
  ipv6: 'fd00:10:244::5',
  mac: '0a:58:0a:f4:00:05',
} as const;

/** Makes a pod as a CNI plugin leaves it: `eth0` with addresses and a default route. */
export async function createScratchPod(options: { readonly ipv6?: boolean } = {}): Promise<ScratchPod> {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'virtwire-pod-'));
  const [podFile, outsideFile] = [path.join(directory, 'pod'), path.join(directory, 'outside')];
  const [namespace, outside] = [NetworkNamespace.create(podFile), NetworkNamespace.create(outsideFile)];
  const root = path.join(directory, 'root');
  fs.mkdirSync(path.join(root, 'run/kubevirt-private'), { recursive: true });
  fs.mkdirSync(path.join(root, 'var'));
  fs.symlinkSync('/run', path.join(root, 'var/run'));
  // Started from inside: there is no moment in which its pid leads to the machine's own network.
  const launcher = namespace.run(() => ({ started: startProcess('sleep', ['600']) }));
  const process = await launcher.started;
  const inode = fs.statSync(`/proc/${process.pid}/ns/net`, { bigint: true }).ino;
  if (inode !== namespace.inode) throw new Error('the scratch pod is not in its own network namespace');
  const routes = RouteSocket.open(namespace);
  await connect(namespace, outside, routes, options.ipv6 === true);
  return {
    launcher: { pid: process.pid, ppid: 1, rootPath: root },
    namespace,
    outside,
    routes,
    root,
    privateDir: path.join(directory, 'private'),
    run: async (file = '', ...args) => (await runTool(file, args, { network: namespace })).stdout,
    async remove() {
      process.kill('SIGKILL');
      await process.exited;
      for (const held of [routes, namespace, outside]) held[Symbol.dispose]();
      for (const file of [podFile, outsideFile]) NetworkNamespace.remove(file);
      fs.rmSync(directory, { recursive: true });
    },
  };
}

async function connect(
  namespace: NetworkNamespace,
  outside: NetworkNamespace,
  routes: RouteSocket,
  ipv6: boolean,
): Promise<void> {
  await routes.createVeth('eth0', 'pod0', outside);
  const up = async (socket: RouteSocket, name: string): Promise<number> => {
    const index = socket.link(name)?.index ?? 0;
    await socket.setLink(index, { up: true });
    return index;
  };
  using far = RouteSocket.open(outside);
  await far.addAddress(await up(far, 'pod0'), `${POD.gateway4}/24`);
  await up(routes, 'lo');
  const eth0 = routes.link('eth0')?.index ?? 0;
  await routes.setLink(eth0, { mac: POD.mac, mtu: 1450 });
  await up(routes, 'eth0');
  await routes.addAddress(eth0, `${POD.ipv4}/24`);
  if (ipv6) await routes.addAddress(eth0, `${POD.ipv6}/64`);
  await routes.addRoute({ destination: '0.0.0.0/0', gateway: POD.gateway4, linkIndex: eth0 });
  if (ipv6)
    await runTool('sysctl', ['-qw', 'net.ipv6.conf.all.accept_dad=0'], { network: namespace, okCodes: [0, 1, 255] });
}
