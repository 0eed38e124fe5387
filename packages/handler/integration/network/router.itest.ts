import * as fs from 'node:fs';
import * as path from 'node:path';
import { ICMP6_PORT, NetworkNamespace, openBoundIcmp6, RouteSocket, runTool } from '@virtwire/host';
import { createLogger } from '@virtwire/telemetry';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Vmi } from '../../src/model.ts';
import { createNetworkPart } from '../../src/prepare/network/network-part.ts';
import { createRouterPart } from '../../src/prepare/network/router-part.ts';
import { createScratchPod } from './scratch-pod.ts';
import type { ScratchPod } from './scratch-pod.ts';

const log = createLogger('virt-handler', { destination: { write: () => undefined } });
const vmi: Vmi = {
  metadata: { namespace: 'ns', name: 'vm', uid: 'u' },
  spec: {
    domain: { devices: { interfaces: [{ name: 'default', masquerade: {} }] } },
    networks: [{ name: 'default', pod: {} }],
  },
  status: { runtimeUser: 107 },
};

let pod: ScratchPod;
let guest: NetworkNamespace;
let guestFile: string;
const routers = createRouterPart({ log });

async function makePod(ipv6: boolean): Promise<void> {
  pod = await createScratchPod({ ipv6 });
  const options = {
    privateDir: pod.privateDir,
    ownPodIp: '10.244.0.2',
    bindingPlugins: () => ({}),
    portRanges: () => false,
  };
  await createNetworkPart({ log }, options).setUp(vmi, ['default'], pod.launcher);
}

beforeEach(() => {
  guestFile = path.join(fs.mkdtempSync('/tmp/virtwire-router-'), 'guest');
  guest = NetworkNamespace.create(guestFile);
});

afterEach(async () => {
  routers.stop('u');
  guest[Symbol.dispose]();
  NetworkNamespace.remove(guestFile);
  fs.rmSync(path.dirname(guestFile), { recursive: true });
  await pod.remove();
});

/** Plugs a card into the bridge: the guest's kernel then asks for a router, as that of a virtual machine does. */
async function plugCard(): Promise<void> {
  await pod.routes.createVeth('plug', 'card', guest);
  const bridge = pod.routes.link('k6t-eth0')?.index ?? 0;
  await pod.routes.setLink(pod.routes.link('plug')?.index ?? 0, { masterIndex: bridge, up: true });
  using inside = RouteSocket.open(guest);
  await inside.setLink(inside.link('card')?.index ?? 0, { up: true });
}

async function inGuest(...[file = '', ...args]: readonly string[]): Promise<string> {
  return (await runTool(file, args, { network: guest })).stdout;
}

async function defaultRoutes(): Promise<string> {
  return await inGuest('ip', '-6', 'route', 'show', 'default');
}

test('a guest behind masquerade learns its IPv6 default route from its kernel’s own question', async () => {
  await makePod(true);
  routers.start(vmi, pod.launcher);
  expect(routers.isServing('u')).toBe(true);
  await plugCard();
  await expect
    .poll(defaultRoutes, { timeout: 60_000, interval: 200 })
    .toMatch(/^default via fe80::\S+ dev card proto ra/);
  expect(await defaultRoutes()).toContain('mtu 1450');
  expect(await inGuest('ip', '-6', 'route', 'show', 'fd10:0:2::/120')).toContain('dev card');
  expect(await inGuest('ip', '-6', '-o', 'addr', 'show', 'dev', 'card')).not.toContain('fd10:');
});

test('a guest whose pod has no IPv6 hears of no router (FM-5.7)', async () => {
  await makePod(false);
  routers.start(vmi, pod.launcher);
  expect(routers.isServing('u')).toBe(true);
  const before = fs.readdirSync('/proc/self/fd').length;
  routers.stop('u');
  expect(fs.readdirSync('/proc/self/fd').length).toBe(before);
});

test('a guest that floods with solicitations, real and broken, is answered a few times a second', async () => {
  await makePod(true);
  routers.start(vmi, pod.launcher);
  await plugCard();
  await expect.poll(defaultRoutes, { timeout: 60_000, interval: 200 }).toContain('default via');
  const socket = guest.run(() => ({ socket: openBoundIcmp6({ device: 'card', receives: [134] }) })).socket;
  let heard = 0;
  socket.on('message', () => (heard += 1));
  const began = performance.now();
  try {
    for (let i = 0; i < 2_000; i++) {
      const question = Buffer.alloc(8 + (i % 64), i % 3 === 0 ? 0xff : 0);
      question[0] = 133;
      await new Promise((done) => socket.send(question, ICMP6_PORT, 'ff02::2', done));
    }
    await expect.poll(() => heard, { timeout: 30_000 }).toBeGreaterThan(0);
  } finally {
    socket.close();
  }
  const gaps = Math.ceil((performance.now() - began) / 200);
  expect(heard).toBeLessThanOrEqual(gaps + 2);
});

test('200 starts and stops leave no descriptor and no namespace behind', async () => {
  await makePod(true);
  routers.start(vmi, pod.launcher);
  routers.stop('u');
  const before = fs.readdirSync('/proc/self/fd').length;
  for (let i = 0; i < 200; i++) {
    routers.start(vmi, pod.launcher);
    routers.stop('u');
  }
  await expect.poll(() => fs.readdirSync('/proc/self/fd').length, { timeout: 10_000 }).toBe(before);
});
