import { createServer } from 'node:net';
import type { Server, Socket } from 'node:net';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createByteReader } from './byte-reader.ts';
import { openNbdExport } from './client.ts';
import { NBD } from './protocol.ts';

let root: string;
let server: Server;
const sockets: Socket[] = [];
const signal = new AbortController().signal;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'virtwire-nbd-'));
});
afterEach(() => {
  server.close();
  for (const socket of sockets.splice(0)) socket.destroy();
  rmSync(root, { recursive: true, force: true });
});

/** Listens with a server that does whatever a case wants. */
async function serve(behave: (socket: Socket) => Promise<void> | void): Promise<string> {
  const path = join(root, 'socket');
  server = createServer((socket) => {
    sockets.push(socket);
    socket.on('error', () => undefined);
    void Promise.resolve(behave(socket)).catch(() => undefined);
  });
  await new Promise<void>((resolve) => server.listen(path, resolve));
  return path;
}

function greeting(magic: bigint = NBD.magic): Buffer {
  const bytes = Buffer.alloc(18);
  bytes.writeBigUInt64BE(magic);
  bytes.writeBigUInt64BE(NBD.haveOption, 8);
  bytes.writeUInt16BE(3, 16);
  return bytes;
}

function optionReply(option: number, type: number, data: Buffer = Buffer.alloc(0), length = data.length): Buffer {
  const header = Buffer.alloc(20);
  header.writeBigUInt64BE(NBD.optionReply);
  header.writeUInt32BE(option, 8);
  header.writeUInt32BE(type, 12);
  header.writeUInt32BE(length, 16);
  return Buffer.concat([header, data]);
}

const info = (size: bigint): Buffer => {
  const bytes = Buffer.alloc(12);
  bytes.writeBigUInt64BE(size, 2);
  return bytes;
};

function chunk(handle: bigint, type: number, payload: Buffer, length = payload.length): Buffer {
  const header = Buffer.alloc(20);
  header.writeUInt32BE(NBD.structuredReply);
  header.writeUInt16BE(NBD.chunkDone, 4);
  header.writeUInt16BE(type, 6);
  header.writeBigUInt64BE(handle, 8);
  header.writeUInt32BE(length, 16);
  return Buffer.concat([header, payload]);
}

const at = (offset: bigint, data: Buffer = Buffer.alloc(0)): Buffer => {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64BE(offset);
  return Buffer.concat([bytes, data]);
};

/** A handshake as it should be, and then an answer to the first request. */
async function shake(socket: Socket, answer: (handle: bigint) => Buffer): Promise<void> {
  const reader = createByteReader(socket);
  socket.write(greeting());
  await reader.take(4);
  for (const option of [NBD.option.structuredReply, NBD.option.go]) {
    const header = await reader.take(16);
    await reader.take(header.readUInt32BE(12));
    if (option === NBD.option.go) socket.write(optionReply(option, NBD.reply.info, info(4_096n)));
    socket.write(optionReply(option, NBD.reply.ack));
  }
  const request = await reader.take(28);
  // Byte by byte, as a slow peer sends it.
  for (const byte of answer(request.readBigUInt64BE(8))) socket.write(Buffer.of(byte));
}

test('data in pieces, and zeros that are not sent', async () => {
  const path = await serve((socket) =>
    shake(socket, (handle) => {
      const hole = Buffer.alloc(4);
      hole.writeUInt32BE(2);
      const first = chunk(handle, NBD.chunk.offsetData, at(8n, Buffer.from('abcd')));
      first.writeUInt16BE(0, 4);
      return Buffer.concat([first, chunk(handle, NBD.chunk.offsetHole, at(12n, hole))]);
    }),
  );
  using source = await openNbdExport(path, 'data', [], signal);
  expect(source.size).toBe(4_096n);
  expect(await source.read(8n, 6)).toEqual(Buffer.from('abcd\0\0'));
});

describe('a server that lies is refused', () => {
  const huge = 2 ** 31;
  test.each<[string, (handle: bigint) => Buffer, RegExp]>([
    ['bytes before those asked for', (h) => chunk(h, 1, at(0n, Buffer.alloc(6))), /outside of what was asked for/],
    ['too many bytes', (h) => chunk(h, 1, at(8n, Buffer.alloc(7))), /outside of what was asked for/],
    ['too few bytes', (h) => chunk(h, 1, at(8n, Buffer.alloc(5))), /incomplete data/],
    ['no offset', (h) => chunk(h, 1, Buffer.alloc(3)), /outside of what was asked for/],
    ['a chunk of another kind', (h) => chunk(h, 5, Buffer.alloc(12)), /unexpected chunk/],
    ['an answer to another request', (h) => chunk(h + 1n, 1, at(8n, Buffer.alloc(6))), /broken reply/],
    ['a length that would fill the memory', (h) => chunk(h, 1, Buffer.alloc(0), huge), /broken reply/],
    ['an error with its text', (h) => chunk(h, 0x8001, Buffer.from('\0\0\0\x05\0\x04oops')), /NBD server: oops/],
    ['an error without one', (h) => chunk(h, 0x8001, Buffer.from('\0\0\0\x05\0\0')), /NBD server: error 5/],
  ])('%s', async (_title, answer, message) => {
    const path = await serve((socket) => shake(socket, answer));
    using source = await openNbdExport(path, 'data', [], signal);
    await expect(source.read(8n, 6)).rejects.toThrow(message);
  });

  test.each<[string, Buffer, RegExp]>([
    ['another protocol', greeting(7n), /no NBD of today/],
    ['a reply to another option', Buffer.concat([greeting(), optionReply(99, 1)]), /reply to another option/],
    ['a reply without end', Buffer.concat([greeting(), optionReply(8, 1, Buffer.alloc(0), huge)]), /broken option/],
    [
      'a refusal with its text',
      Buffer.concat([greeting(), optionReply(8, 0x80000001, Buffer.from('not here'))]),
      /NBD server: not here/,
    ],
  ])('%s', async (_title, bytes, message) => {
    const path = await serve((socket) => void socket.write(bytes));
    await expect(openNbdExport(path, 'data', [], signal)).rejects.toThrow(message);
  });
});

test('a server that hangs up', async () => {
  const path = await serve((socket) => void socket.end(greeting().subarray(0, 9)));
  await expect(openNbdExport(path, 'data', [], signal)).rejects.toThrow('NBD server: unexpected end of stream');
});

test('a server that is not there', async () => {
  const path = await serve(() => undefined);
  await expect(openNbdExport(`${path}-not`, 'data', [], signal)).rejects.toThrow(
    /^failed to connect to .*socket-not: .*ENOENT/,
  );
});

test('a caller that gives up ends a silent connection', async () => {
  const abort = new AbortController();
  const path = await serve(() => undefined);
  const opening = openNbdExport(path, 'data', [], abort.signal);
  abort.abort();
  await expect(opening).rejects.toThrow();
});
