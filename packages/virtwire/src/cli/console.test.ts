import { mkdtempSync, rmSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import type { Server, Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { attachConsole } from './console.ts';
import type { ConsoleInput } from './console.ts';
import type { Output } from './output.ts';

let dir = '';
let server: Server;
let guest: Promise<Socket>;

beforeEach(async () => {
  dir = mkdtempSync(join(tmpdir(), 'virtwire-console-'));
  server = createServer();
  guest = new Promise((resolve) =>
    server.once('connection', (side) => {
      side.on('error', () => undefined); // A guest that still talks to a console that was left gets EPIPE.
      resolve(side);
    }),
  );
  await new Promise<void>((resolve) => server.listen(join(dir, 's'), resolve));
});
afterEach(() => {
  server.close();
  rmSync(dir, { recursive: true });
});

/** A terminal that notes when it is switched to raw mode and back. */
class Terminal extends PassThrough {
  readonly modes: boolean[] = [];
  readonly isTTY = true;

  setRawMode(isRaw: boolean): this {
    this.modes.push(isRaw);
    return this;
  }
}

async function attached(input: PassThrough, signal?: AbortSignal, isSlow = false) {
  let shown = '';
  const shownMore = isSlow
    ? Promise.withResolvers<undefined>()
    : { promise: Promise.resolve(), resolve: () => undefined };
  const output: Output = {
    line: () => undefined,
    error: () => undefined,
    document: () => undefined,
    raw: (bytes) => {
      shown += Buffer.from(bytes).toString();
      return shownMore.promise;
    },
  };
  const socket = connect(join(dir, 's'));
  const end = attachConsole(socket, input as unknown as ConsoleInput, output, signal);
  return { end, guest: await guest, shown: () => shown, showMore: () => shownMore.resolve(undefined) };
}

async function received(socket: Socket, text: string): Promise<void> {
  let got = '';
  for await (const chunk of socket) {
    got += String(chunk);
    if (got.includes(text)) return;
  }
  throw new Error(`the guest got "${got}" alone`);
}

test('what is typed goes to the guest, what it says is shown, Ctrl-] leaves and is not sent', async () => {
  const terminal = new Terminal();
  const { end, guest: side, shown } = await attached(terminal);
  side.write('login: ');
  terminal.write('root\r');
  await received(side, 'root\r');
  terminal.write('x\x1dy');
  expect(await end).toBe('left');
  expect(shown()).toBe('login: ');
  expect(terminal.modes).toEqual([true, false]);
});

test('Ctrl-] from a pipe is an ordinary byte', async () => {
  const pipe = new PassThrough();
  const { guest: side } = await attached(pipe);
  pipe.write('a\x1db');
  await received(side, 'a\x1db');
});

test('a guest that ends closes the console, and the terminal is as before', async () => {
  const terminal = new Terminal();
  const { end, guest: side } = await attached(terminal);
  side.end();
  expect(await end).toBe('closed');
  expect(terminal.modes).toEqual([true, false]);
});

test('the signal takes the terminal back', async () => {
  const abort = new AbortController();
  const { end } = await attached(new Terminal(), abort.signal);
  abort.abort();
  expect(await end).toBe('aborted');
});

test('FM-11.4 a guest that floods its console waits for the terminal', async () => {
  const abort = new AbortController();
  const { end, guest: side, shown, showMore } = await attached(new Terminal(), abort.signal, true);
  const flood = Buffer.alloc(1 << 20, 'x');
  let sent = 0;
  while (side.write(flood) || side.writableLength < 8 * flood.length) sent += flood.length;
  await new Promise((resolve) => setTimeout(resolve, 100)); // time for a client without limits to take it all
  expect(shown().length).toBeLessThan(flood.length);
  showMore();
  for (const deadline = Date.now() + 10_000; shown().length < sent && Date.now() < deadline;) {
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  expect(shown().length).toBeGreaterThanOrEqual(sent);
  abort.abort();
  expect(await end).toBe('aborted');
});
