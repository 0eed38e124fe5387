import type { Duplex } from 'node:stream';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { connect } from './connection.ts';
import type { Connection } from './connection.ts';
import type { Domain } from './domain.ts';
import { startFakeDaemon } from './fake/index.ts';
import type { FakeDaemon, FakeDomain } from './fake/index.ts';

const XML = `<domain type='qemu'><name>a</name><os><type>hvm</type></os>
  <devices><serial type='pty'/><console type='pty'/><video/></devices></domain>`;
let daemon: FakeDaemon;
let connection: Connection;
let guest: FakeDomain;
let domain: Domain;

beforeEach(async () => {
  daemon = await startFakeDaemon();
  connection = await connect({ socketPath: daemon.socketPath });
  guest = daemon.hypervisor.define(XML);
  guest.start(false);
  domain = await connection.lookupDomainByName('a');
});

afterEach(async () => {
  await connection.close();
  await daemon.close();
});

function text(stream: Duplex): { value: string } {
  const out = { value: '' };
  stream.on('data', (chunk: Buffer) => {
    out.value += chunk.toString();
  });
  return out;
}

test('carries a console both ways, packet by packet and in large pieces', async () => {
  const stream = await domain.openConsole();
  const out = text(stream);
  guest.console.onInput = (bytes) => guest.console.print(`<${String(bytes.length)}>`);
  stream.write('ls\n');
  await expect.poll(() => out.value).toBe('<3>');
  const sent = new Promise((resolve) => stream.write(Buffer.alloc(1_000_000, 'x'), resolve));
  await sent;
  await expect.poll(() => guest.console.received.length).toBe(1_000_003);
  guest.console.print('y'.repeat(1_000_000));
  await expect.poll(() => out.value.endsWith('y') && out.value.length > 1_000_000).toBe(true);
});

test('keeps what nobody has read yet while further packets come', async () => {
  const stream = await domain.openConsole();
  const pieces = ['a', 'b', 'c', 'd', 'e', 'f'].map((letter) => letter.repeat(10));
  for (const piece of pieces) {
    guest.console.print(piece);
    await connection.getType();
  }
  const out = text(stream);
  await expect.poll(() => out.value).toBe(pieces.join(''));
});

test('ends with the guest’s end of data', async () => {
  const stream = await domain.openConsole();
  const out = text(stream);
  const ended = new Promise((resolve) => stream.once('end', resolve));
  const closed = new Promise((resolve) => stream.once('close', resolve));
  guest.console.print('bye');
  guest.destroy();
  await ended;
  await closed;
  expect(out.value).toBe('bye');
  expect(guest.console.isOpen).toBe(false);
});

test('aborts in the daemon too when it is destroyed', async () => {
  const stream = await domain.openConsole();
  expect(guest.console.isOpen).toBe(true);
  stream.destroy();
  await expect.poll(() => guest.console.isOpen).toBe(false);
  (await domain.openConsole()).destroy();
});

test('aborts a stream whose reader falls too far behind, and nothing else', async () => {
  const stream = await domain.openConsole(null, 0, { maxBufferedBytes: 100_000 });
  const failed = new Promise<Error>((resolve) => stream.once('error', resolve));
  guest.console.print('z'.repeat(200_000));
  expect(await failed).toMatchObject({ kind: 'StreamFailed', message: 'reader is 200000 bytes behind, limit 100000' });
  await expect.poll(() => guest.console.isOpen).toBe(false);
  expect(await connection.getType()).toBe('QEMU');
});

test('closes a stream that nobody waits for any more', async () => {
  daemon.faults.add({ kind: 'slow', delayMs: 40 }, { procedure: 'DOMAIN_OPEN_CONSOLE' });
  await expect(domain.openConsole(null, 0, { timeoutMs: 10 })).rejects.toMatchObject({ kind: 'Timeout' });
  await expect.poll(() => guest.console.isOpen).toBe(false);
});

test('refuses to write after the end', async () => {
  const stream = await domain.openConsole();
  stream.resume();
  guest.console.close();
  await new Promise((resolve) => stream.once('end', resolve));
  const failed = new Promise<Error>((resolve) => stream.once('error', resolve));
  stream.write('late');
  await failed;
});

test('takes fifty screenshots, four at a time, and leaves no stream open', async () => {
  const shots = await Promise.all(Array.from({ length: 50 }, () => domain.screenshot()));
  expect(new Set(shots.map((shot) => shot.data.length)).size).toBe(1);
  expect(shots[0]?.mime).toBe('image/png');
});
