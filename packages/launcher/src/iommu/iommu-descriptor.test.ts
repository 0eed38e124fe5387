import * as fs from 'node:fs';
import * as net from 'node:net';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { copyDescriptors } from '@virtwire/host';
import { createLogger } from '@virtwire/telemetry';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createIommuDescriptor } from './iommu-descriptor.ts';

const LIMIT_MS = 20_000;
const log = createLogger('virt-launcher', { destination: { write: () => undefined } });
const never = new AbortController().signal;

let directory: string;
let socketPath: string;
let device: string;
let plugin: net.Server;
let peers: net.Socket[];
let acknowledgements: Buffer[];

/** Plays the node's device plugin. */
async function offer(onConnection: (peer: net.Socket) => void): Promise<void> {
  plugin.removeAllListeners('connection');
  plugin.on('connection', (peer) => {
    peers.push(peer);
    peer.on('error', () => undefined);
    peer.on('data', (bytes: Buffer) => acknowledgements.push(bytes));
    onConnection(peer);
  });
  if (plugin.listening) return;
  plugin.listen(socketPath);
  await once(plugin, 'listening');
}

/** Sends a descriptor of the file that stands for `/dev/iommu`, as often as asked. */
function sendDevice(peer: net.Socket, times = 1): void {
  const fd = fs.openSync(device, 'r');
  const copies = copyDescriptors(Array.from({ length: times }, () => fd));
  fs.closeSync(fd);
  void copies.send(peer, never).finally(() => copies[Symbol.dispose]());
}

/** How often this process has the device open. */
function opened(): number {
  return fs.readdirSync('/proc/self/fd').filter((fd) => {
    try {
      return fs.readlinkSync(`/proc/self/fd/${fd}`) === device;
    } catch {
      return false;
    }
  }).length;
}

beforeEach(() => {
  directory = fs.realpathSync(fs.mkdtempSync(join(tmpdir(), 'virtwire-iommu-')));
  socketPath = join(directory, 'iommufd.sock');
  device = join(directory, 'iommu');
  fs.writeFileSync(device, '');
  plugin = net.createServer();
  peers = [];
  acknowledgements = [];
});

afterEach(() => {
  for (const peer of peers) peer.destroy();
  plugin.close();
  expect(opened()).toBe(0);
  fs.rmSync(directory, { recursive: true });
});

describe('the descriptor for IOMMUFD', () => {
  test('is received once, with one zero byte as the answer, and kept for the launcher’s life', async () => {
    await offer((peer) => sendDevice(peer));
    {
      using iommu = createIommuDescriptor(socketPath, log, LIMIT_MS);
      expect(iommu.copy()).toBeUndefined();
      expect(await Promise.all([iommu.receive(), iommu.receive()])).toEqual([true, true]);
      expect(await iommu.receive()).toBe(true);
      await expect.poll(() => Buffer.concat(acknowledgements)).toEqual(Buffer.of(0));
      expect(peers).toHaveLength(1);
      expect(opened()).toBe(1);
      fs.unlinkSync(socketPath);
      expect(await iommu.receive()).toBe(true);
      {
        using copy = iommu.copy();
        expect(fs.readlinkSync(`/proc/self/fd/${copy?.fd ?? -1}`)).toBe(device);
        expect(opened()).toBe(2);
      }
      expect(opened()).toBe(1);
    }
  });

  test('is not there in pods without the socket, and looked for again', async () => {
    using iommu = createIommuDescriptor(socketPath, log, LIMIT_MS);
    expect(await iommu.receive()).toBe(false);
    expect(iommu.copy()).toBeUndefined();
    await offer((peer) => sendDevice(peer));
    expect(await iommu.receive()).toBe(true);
  });

  test('is the first of several', async () => {
    await offer((peer) => sendDevice(peer, 3));
    using iommu = createIommuDescriptor(socketPath, log, LIMIT_MS);
    expect(await iommu.receive()).toBe(true);
    await expect.poll(() => opened()).toBe(1);
  });

  test('that comes when the launcher has ended is closed', async () => {
    let send: (() => void) | undefined;
    await offer((peer) => {
      send = () => sendDevice(peer);
    });
    const iommu = createIommuDescriptor(socketPath, log, LIMIT_MS);
    const receiving = iommu.receive();
    await expect.poll(() => send).toBeDefined();
    iommu[Symbol.dispose]();
    send?.();
    expect(await receiving).toBe(false);
  });
});

const PREFIX = 'IOMMUFD socket exists but failed to receive FD: ';

describe('a device plugin', () => {
  test.each<[string, (peer: net.Socket) => void, string]>([
    ['that closes early', (peer) => peer.end(), 'failed to read from IOMMUFD socket: read unix @->SOCKET: EOF'],
    ['that sends bytes alone', (peer) => peer.write('ok'), 'no out-of-band data received (n=2)'],
    ['that sends more bytes than fit', (peer) => peer.write('x'.repeat(90)), 'no out-of-band data received (n=32)'],
  ])('%s fails the sync, and the next may succeed', async (_title, play, text) => {
    await offer(play);
    using iommu = createIommuDescriptor(socketPath, log, LIMIT_MS);
    const message = PREFIX + text.replace('SOCKET', socketPath);
    await expect(iommu.receive()).rejects.toMatchObject({ name: 'LauncherError', code: 'IommuFailed', message });
    expect(iommu.copy()).toBeUndefined();
    expect(acknowledgements).toEqual([]);
    await offer((peer) => sendDevice(peer));
    expect(await iommu.receive()).toBe(true);
  });

  test('that sends nothing is given up', async () => {
    await offer(() => undefined);
    using iommu = createIommuDescriptor(socketPath, log, 30);
    const message = `${PREFIX}failed to read from IOMMUFD socket: read unix @->${socketPath}: i/o timeout`;
    await expect(iommu.receive()).rejects.toMatchObject({ code: 'IommuFailed', message });
  });

  test('that is gone, its socket left behind', async () => {
    fs.writeFileSync(socketPath, '');
    using iommu = createIommuDescriptor(socketPath, log, LIMIT_MS);
    const connect = `failed to connect to IOMMUFD socket ${socketPath}: dial unix ${socketPath}: connect: `;
    await expect(iommu.receive()).rejects.toMatchObject({ message: `${PREFIX}${connect}connection refused` });
  });
});
