import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { serveNotify } from '@virtwire/shared-proto';
import { createLogger } from '@virtwire/telemetry';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { eventually } from '../testing/launcher-on-fake.ts';
import { createHandlerLine } from './notify-sender.ts';

let dir: string;
let pipe: string;
let messages: unknown[];
let heard: string[];

const write = (line: string): void => void messages.push((JSON.parse(line) as { msg: string }).msg);
const log = createLogger('virt-launcher', { destination: { write } });
const handlers = {
  handleDomainEvent: ({ eventType }: { eventType: string }) => void heard.push(eventType),
  handleK8sEvent: () => undefined,
};

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'vw-line-'));
  pipe = join(dir, 'pipe.sock');
  messages = [];
  heard = [];
});
afterEach(() => rmSync(dir, { recursive: true }));

test('says once that there is a handler at the other end, not with each message', async () => {
  const line = createHandlerLine(pipe, log);
  const server = await serveNotify(pipe, handlers);
  for (const type of ['ADDED', 'MODIFIED']) expect(await line.sendDomainEvent('{}', type)).toBeUndefined();
  await line[Symbol.asyncDispose]();
  await server.stop(100);
  expect(heard).toEqual(['ADDED', 'MODIFIED']);
  expect(messages).toEqual([`Successfully connected to domain notify socket at ${pipe}`]);
});

test('FM-11.5 a handler that is away is told of at once, and once, until it is there', async () => {
  const line = createHandlerLine(pipe, log);
  const sent = line.sendDomainEvent('{}', 'ADDED');
  await eventually('the first try', () => messages.length > 0);
  const server = await serveNotify(pipe, handlers);
  expect(await sent).toBeUndefined();
  await line[Symbol.asyncDispose]();
  await server.stop(100);
  expect(heard).toEqual(['ADDED']);
  const found = `Successfully connected to domain notify socket at ${pipe}`;
  expect(messages).toEqual(['Failed to connect to notify server', found]);
});
