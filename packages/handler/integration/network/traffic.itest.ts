import * as fs from 'node:fs';
import * as path from 'node:path';
import { NetworkNamespace, RouteSocket, runTool, startProcess } from '@virtwire/host';
import { createLogger } from '@virtwire/telemetry';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Vmi } from '../../src/model.ts';
import { createNetworkPart } from '../../src/prepare/network/network-part.ts';
import { createScratchPod, POD } from './scratch-pod.ts';
import type { ScratchPod } from './scratch-pod.ts';

const log = createLogger('virt-handler', { destination: { write: () => undefined } });

let pod: ScratchPod;
let guest: NetworkNamespace;
let guestFile: string;

beforeEach(async () => {
  pod = await createScratchPod();
  guestFile = path.join(path.dirname(pod.root), 'guest');
  guest = NetworkNamespace.create(guestFile);
});

afterEach(async () => {
  guest[Symbol.dispose]();
  NetworkNamespace.remove(guestFile);
  await pod.remove();
});

/** Sets the pod up and plugs a guest into its bridge: a network namespace in the place of a virtual machine. */
async function startGuest(binding: object, card: { ip: string; gateway: string; mac: string }): Promise<void> {
  const vmi: Vmi = {
    metadata: { namespace: 'ns', name: 'vm', uid: 'u' },
    spec: {
      domain: { devices: { interfaces: [{ name: 'default', ...binding }] } },
      networks: [{ name: 'default', pod: {} }],
    },
    status: { runtimeUser: 107 },
  };
  const options = {
    privateDir: pod.privateDir,
    ownPodIp: undefined,
    bindingPlugins: () => ({}),
    portRanges: () => false,
  };
  await createNetworkPart({ log }, options).setUp(vmi, ['default'], pod.launcher);
  await pod.routes.createVeth('plug', 'card', guest);
  const bridge = pod.routes.link('k6t-eth0')?.index ?? 0;
  await pod.routes.setLink(pod.routes.link('plug')?.index ?? 0, { masterIndex: bridge, up: true });
  using inside = RouteSocket.open(guest);
  const index = inside.link('card')?.index ?? 0;
  await inside.setLink(index, { mac: card.mac, up: true });
  await inside.addAddress(index, `${card.ip}/24`);
  await inside.addRoute({ destination: '0.0.0.0/0', gateway: card.gateway, linkIndex: index });
}

/** True if an address answers within a few tries: ports of a bridge take a moment to forward. */
async function answers(from: NetworkNamespace, address: string, tries = 10): Promise<boolean> {
  for (let i = 0; i < tries; i++) {
    const { code } = await runTool('ping', ['-c', '1', '-W', '1', address], { network: from, okCodes: [0, 1, 2] });
    if (code === 0) return true;
  }
  return false;
}

async function unplug(): Promise<void> {
  await pod.routes.deleteLink(pod.routes.link('plug')?.index ?? 0);
}

/** A server in the guest that says who has called. */
const WHO_CALLS = `import socket
s=socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); s.bind(("0.0.0.0", 8080)); s.listen(); print("ready", flush=True)
while True:
  c, a = s.accept(); c.sendall(a[0].encode()); c.close()`;

async function call(from: NetworkNamespace, address: string): Promise<string> {
  const script = `import socket; print(socket.create_connection((${JSON.stringify(address)}, 8080), 10).recv(99).decode())`;
  return (await runTool('python3', ['-c', script], { network: from })).stdout.trim();
}

test('behind masquerade the guest is the pod’s address, for callers from outside and from the pod', async () => {
  await startGuest({ masquerade: {} }, { ip: '10.0.2.2', gateway: '10.0.2.1', mac: '02:00:00:00:aa:01' });
  expect(await answers(pod.outside, POD.ipv4)).toBe(true);
  expect(await answers(guest, POD.gateway4)).toBe(true);
  let isReady = false;
  const { server } = guest.run(() => ({
    server: startProcess('python3', ['-c', WHO_CALLS], { onLine: () => (isReady = true) }),
  }));
  const started = await server;
  try {
    await expect.poll(() => isReady, { timeout: 20_000 }).toBe(true);
    expect(await call(pod.outside, POD.ipv4)).toBe(POD.gateway4);
    await pod.run('ip', 'link', 'set', 'lo', 'up');
    expect(await call(pod.namespace, '127.0.0.1')).toBe('10.0.2.1');
  } finally {
    started.kill('SIGKILL');
    await started.exited;
  }
  await unplug();
  expect(await answers(pod.outside, POD.ipv4, 1)).toBe(false);
});

test('a bridged guest has the pod’s address itself, and the pod does not answer for it', async () => {
  await startGuest({ bridge: {} }, { ip: POD.ipv4, gateway: POD.gateway4, mac: POD.mac });
  expect(await answers(pod.outside, POD.ipv4)).toBe(true);
  expect(await answers(guest, POD.gateway4)).toBe(true);
  const neighbours = (await runTool('ip', ['-j', 'neigh'], { network: pod.outside })).stdout;
  expect(JSON.parse(neighbours)).toContainEqual(expect.objectContaining({ dst: POD.ipv4, lladdr: POD.mac }));
  await unplug();
  await runTool('ip', ['neigh', 'flush', 'all'], { network: pod.outside });
  expect(await answers(pod.outside, POD.ipv4, 1)).toBe(false);
});

test('200 set-ups leave no descriptor behind', async () => {
  const options = {
    privateDir: pod.privateDir,
    ownPodIp: undefined,
    bindingPlugins: () => ({}),
    portRanges: () => false,
  };
  const part = createNetworkPart({ log }, options);
  const vmi = (uid: string): Vmi => ({
    metadata: { namespace: 'ns', name: 'vm', uid },
    spec: {
      domain: { devices: { interfaces: [{ name: 'default', masquerade: {} }] } },
      networks: [{ name: 'default', pod: {} }],
    },
  });
  await part.setUp(vmi('warm'), ['default'], pod.launcher);
  const before = fs.readdirSync('/proc/self/fd').length;
  for (let i = 0; i < 200; i++) {
    await part.setUp(vmi('warm'), ['default'], pod.launcher);
    await expect(part.setUp(vmi(`x${i}`), ['nothing'], pod.launcher)).rejects.toThrow('no iface matching');
    await expect(part.setUp(vmi('warm'), ['default'], { ...pod.launcher, pid: 0x3ffffe })).rejects.toThrow(
      'failed to find process',
    );
  }
  expect(fs.readdirSync('/proc/self/fd').length).toBe(before);
});
