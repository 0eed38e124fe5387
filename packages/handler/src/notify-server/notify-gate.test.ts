import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { connectNotify, createNotifySender } from '@virtwire/shared-proto';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { recordedLog } from '../testing/silent-log.ts';
import { createNotifyGate } from './notify-gate.ts';

let root = '';
beforeEach(() => {
  root = mkdtempSync('/tmp/vg');
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

function setUp() {
  const events: string[] = [];
  const heard: (string | undefined)[] = [];
  const gate = createNotifyGate(
    {
      handlers: {
        handleDomainEvent: (request, { identity }) => {
          heard.push(`${request.eventType} ${identity?.name ?? 'nobody'}`);
        },
        handleK8sEvent: () => undefined,
      },
      events: { event: (object, type, reason) => events.push(`${object.kind} ${type} ${reason}`) },
      node: { kind: 'Node', namespace: '', name: 'node01', uid: '' },
      now: Date.now,
      log: recordedLog(),
    },
    join(root, 'share'),
  );
  return { gate, events, heard };
}

const socket = (): string => join(root, 'share/domain-notify.sock');

async function until(what: string, condition: () => boolean): Promise<void> {
  for (let i = 0; i < 3_000; i += 1) {
    if (condition()) return;
    await sleep(5);
  }
  throw new Error(`timed out waiting for ${what}`);
}

test('the shared socket answers version 1 and takes events without an identity', async () => {
  const { gate, heard } = setUp();
  await using _gate = gate;
  await gate.start();
  using client = await connectNotify(socket());
  expect(client.version).toBe(1);
  expect(await client.handleDomainEvent({ eventType: 'MODIFIED' })).toMatchObject({ ok: true });
  expect(heard).toEqual(['MODIFIED nobody']);
});

test('FM-2.1 an event sent while the server starts anew arrives, three times in a row', async () => {
  const { gate, events, heard } = setUp();
  await using _gate = gate;
  await gate.start();
  await using sender = createNotifySender(socket(), { retryIntervalMs: 50 });
  for (let i = 1; i <= 3; i += 1) {
    rmSync(socket());
    expect(await sender.sendDomainEvent({ eventType: `E${i}` })).toMatchObject({ ok: true });
    await until('the server is new', () => events.length >= i && existsSync(socket()));
  }
  expect(heard).toEqual(['E1 nobody', 'E2 nobody', 'E3 nobody']);
  expect(events).toEqual(Array.from({ length: 3 }, () => 'Node Warning NotifyServerFailure'));
});

test('a door keeps its identity across a restart of the server', async () => {
  const { gate, events, heard } = setUp();
  await using _gate = gate;
  await gate.start();
  using door = gate.openDoor({ namespace: 'ns1', name: 'vm1', uid: 'u1' });
  const pipe = join(root, 'pipe.sock');
  const server = createServer({ pauseOnConnect: true }, (connection) => door.accept(connection));
  await new Promise<void>((resolve) => void server.listen(pipe, resolve));
  await using sender = createNotifySender(pipe, { retryIntervalMs: 50 });
  await sender.sendDomainEvent({ eventType: 'ADDED' });
  rmSync(socket());
  await until('the failure is told', () => events.length > 0);
  expect(await sender.sendDomainEvent({ eventType: 'MODIFIED' })).toMatchObject({ ok: true });
  expect(heard).toEqual(['ADDED vm1', 'MODIFIED vm1']);
  server.close();
});

test('FM-2.5 after ten failures in a row the gate gives up, with an event for each', async () => {
  const { gate, events } = setUp();
  await gate.start();
  rmSync(join(root, 'share'), { recursive: true });
  writeFileSync(join(root, 'share'), 'in the way');
  await expect(gate.failed).rejects.toMatchObject({ code: 'NotifyServer' });
  expect(events).toHaveLength(10);
  await gate[Symbol.asyncDispose]();
});
