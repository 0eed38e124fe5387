import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { serveNotify } from '@virtwire/shared-proto';
import { createLogger } from '@virtwire/telemetry';
import { expect, test } from 'vitest';
import { createHandlerLine } from './notify-sender.ts';

test('says once that there is a handler at the other end, not with each message', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'vw-line-'));
  const pipe = join(dir, 'pipe.sock');
  const messages: unknown[] = [];
  const write = (line: string): void => void messages.push((JSON.parse(line) as { msg: string }).msg);
  const log = createLogger('virt-launcher', { destination: { write } });
  const heard: string[] = [];
  const handlers = {
    handleDomainEvent: ({ eventType }: { eventType: string }) => void heard.push(eventType),
    handleK8sEvent: () => undefined,
  };
  const line = createHandlerLine(pipe, log);
  const server = await serveNotify(pipe, handlers);
  for (const type of ['ADDED', 'MODIFIED']) expect(await line.sendDomainEvent('{}', type)).toBeUndefined();
  await line[Symbol.asyncDispose]();
  await server.stop(100);
  rmSync(dir, { recursive: true });
  expect(heard).toEqual(['ADDED', 'MODIFIED']);
  expect(messages).toEqual([`Successfully connected to domain notify socket at ${pipe}`]);
});

test('a message that no handler can take is refused at once, and is not kept to be tried for ever', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'vw-line-'));
  const pipe = join(dir, 'pipe.sock');
  const log = createLogger('virt-launcher', { destination: { write: () => undefined } });
  const server = await serveNotify(pipe, { handleDomainEvent: () => undefined, handleK8sEvent: () => undefined });
  const line = createHandlerLine(pipe, log);
  const failure = await line.sendDomainEvent('x'.repeat(5_000_000), 'MODIFIED');
  expect(failure?.isRefused).toBe(true);
  expect(failure?.error.message).toMatch(/^failed to notify domain event: trying to send message larger than max/);
  expect(await line.sendDomainEvent('{}', 'MODIFIED')).toBeUndefined();
  await line[Symbol.asyncDispose]();
  await server.stop(100);
  rmSync(dir, { recursive: true });
});
