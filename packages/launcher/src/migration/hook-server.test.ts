import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createLogger } from '@virtwire/telemetry';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { askHookServer } from './hook-client.ts';
import type { HookServer } from './hook-server.ts';
import { createHookServer } from './hook-server.ts';

const XML = '<domain>\n  <name>vm</name>\n</domain>\n';
const LIMIT_MS = 10_000;
const log = createLogger('virt-launcher', { destination: { write: () => undefined } });
let dir: string;
let socket: string;
let server: HookServer;

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'virtwire-hook-'));
  socket = join(dir, 'sock');
  server = createHookServer(socket, log);
});

afterEach(() => {
  server.stop();
  rmSync(dir, { recursive: true });
});

const upper = (xml: string): Promise<string> => Promise.resolve(xml.toUpperCase());

test('answers one call with the adapted domain, and then is gone until the next migration', async () => {
  await server.start(upper);
  expect(await askHookServer(socket, XML, LIMIT_MS)).toBe(XML.toUpperCase());
  expect(existsSync(socket)).toBe(false);
  await server.start(upper);
  expect(await askHookServer(socket, XML, LIMIT_MS)).toBe(XML.toUpperCase());
});

test('FM-8.2 a target that is prepared again answers for the last preparation', async () => {
  await server.start(() => Promise.resolve('old'));
  await server.start(upper);
  expect(await askHookServer(socket, XML, LIMIT_MS)).toBe(XML.toUpperCase());
});

test('answers a client that does not say that it is done', async () => {
  await server.start(upper);
  const client = connect(socket);
  const answer = new Promise<string>((resolve) => client.setEncoding('utf8').once('data', resolve));
  client.write(XML.slice(0, 10));
  client.write(XML.slice(10));
  expect(await answer).toBe(XML.toUpperCase());
  client.destroy();
});

test('what cannot be adapted is refused without a word', async () => {
  await server.start(() => Promise.reject(new Error('no CPUs')));
  await expect(askHookServer(socket, XML, LIMIT_MS)).rejects.toThrow('the launcher refuses the incoming domain');
});

test('a client that goes away in the middle ends its migration only', async () => {
  await server.start(upper);
  const client = connect(socket);
  await new Promise<void>((resolve) => client.write('<domain>', () => resolve()));
  client.destroy();
  await expect.poll(() => existsSync(socket)).toBe(false);
  await server.start(upper);
  expect(await askHookServer(socket, XML, LIMIT_MS)).toBe(XML.toUpperCase());
});

test('the client waits for a launcher that is about to listen, and not for ever', async () => {
  const asking = askHookServer(socket, XML, LIMIT_MS);
  await server.start(upper);
  expect(await asking).toBe(XML.toUpperCase());
  await expect(askHookServer(socket, XML, 300)).rejects.toThrow(/timeout/);
});
