// What a call costs: on grpc-js alone, behind the filter once it has stepped aside, and with every request rewritten.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { Client, credentials, Metadata, Server, ServerCredentials } from '@grpc/grpc-js';

import { serveCmd } from '../src/index.ts';

const CALLS = 10_000;
const PING = '/kubevirt.cmd.v1.Cmd/Ping';
const asIs = (bytes: Buffer): Buffer => bytes;
const SUCCESS = Buffer.from('0801', 'hex');

function openClient(socketPath: string, authority: string): Client {
  return new Client(`unix:${socketPath}`, credentials.createInsecure(), {
    'grpc.default_authority': authority,
    'grpc.use_local_subchannel_pool': 1,
  });
}

function ping(client: Client): Promise<void> {
  return new Promise((resolve, reject) => {
    client.makeUnaryRequest(PING, asIs, asIs, Buffer.alloc(0), new Metadata(), {}, (error) =>
      error === null ? resolve() : reject(error),
    );
  });
}

/** Microseconds per call, one after the other, after a warm-up. */
async function measure(socketPath: string, authority: string): Promise<number> {
  const client = openClient(socketPath, authority);
  for (let i = 0; i < 2_000; i++) await ping(client);
  const startMs = performance.now();
  for (let i = 0; i < CALLS; i++) await ping(client);
  const elapsedMs = performance.now() - startMs;
  client.close();
  return (elapsedMs * 1_000) / CALLS;
}

async function servePlain(socketPath: string): Promise<Server> {
  const server = new Server();
  server.register(
    PING,
    (_call: unknown, answer: (error: null, bytes: Buffer) => void) => answer(null, SUCCESS),
    asIs,
    asIs,
    'unary',
  );
  await new Promise<void>((resolve, reject) => {
    server.bindAsync(`unix:${socketPath}`, ServerCredentials.createInsecure(), (error) =>
      error === null ? resolve() : reject(error),
    );
  });
  return server;
}

const directory = mkdtempSync(join(tmpdir(), 'virtwire-bench-'));
const plainPath = join(directory, 'plain.sock');
const ownPath = join(directory, 'own.sock');
const plain = await servePlain(plainPath);
const own = await serveCmd(ownPath, { ping: async () => undefined });
const rows: [string, number][] = [
  ['grpc-js alone', await measure(plainPath, 'localhost')],
  ['serveCmd, good authority', await measure(ownPath, 'localhost')],
  ['serveCmd, path as authority', await measure(ownPath, '/var/run/kubevirt/domain-notify-pipe.sock')],
];
const heapMiB = process.memoryUsage().heapUsed / 1_048_576;
for (const [name, microseconds] of rows)
  process.stdout.write(`${name.padEnd(30)} ${microseconds.toFixed(1)} us/call\n`);
process.stdout.write(`${'heap after all calls'.padEnd(30)} ${heapMiB.toFixed(1)} MiB\n`);
plain.forceShutdown();
await own.stop();
rmSync(directory, { recursive: true, force: true });
