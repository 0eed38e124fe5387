import { createHash, randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import type { AddressInfo, Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createLogger } from '@virtwire/telemetry';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { startTcpProxy } from './tcp-proxy.ts';

const log = createLogger('virt-launcher', { destination: { write: () => undefined } });
const owner = { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 };
let dir: string;
let servers: Server[];

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'virtwire-proxy-'));
  servers = [];
});

afterEach(() => {
  for (const server of servers) server.close();
  rmSync(dir, { recursive: true });
});

async function proxyTo(port: number): Promise<string> {
  const socketPath = join(dir, 'sock');
  servers.push(await startTcpProxy({ socketPath, port }, owner, log));
  return socketPath;
}

async function echoPort(): Promise<number> {
  const server = createServer((socket) => socket.pipe(socket));
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return (server.address() as AddressInfo).port;
}

test('takes many bytes both ways, unchanged, on several connections', async () => {
  const socketPath = await proxyTo(await echoPort());
  const bytes = randomBytes(4 << 20);
  const exchange = (): Promise<string> =>
    new Promise((resolve, reject) => {
      const hash = createHash('sha256');
      let left = bytes.length;
      const socket = connect(socketPath);
      socket.on('error', reject).on('data', (chunk) => {
        hash.update(chunk);
        left -= chunk.length;
        if (left > 0) return;
        socket.destroy();
        resolve(hash.digest('hex'));
      });
      socket.write(bytes);
    });
  const wanted = createHash('sha256').update(bytes).digest('hex');
  expect(await Promise.all([exchange(), exchange(), exchange()])).toEqual([wanted, wanted, wanted]);
});

test('a connection to a port where nobody listens ends', async () => {
  const socketPath = await proxyTo(1);
  const socket = connect(socketPath);
  await new Promise((resolve) => socket.once('close', resolve));
});

test('takes the place of a socket that was left over, and names one that cannot be', async () => {
  const port = await echoPort();
  await proxyTo(port);
  await proxyTo(port);
  const missing = join(dir, 'missing/sock');
  await expect(startTcpProxy({ socketPath: missing, port }, owner, log)).rejects.toThrow(
    `failed to serve ${missing}: `,
  );
});
