import * as fs from 'node:fs';
import * as net from 'node:net';
import * as os from 'node:os';
import * as path from 'node:path';
import { once } from 'node:events';
import { duplexPair } from 'node:stream';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { copyDescriptors } from './copy-descriptors.ts';
import { Descriptor } from './descriptor.ts';
import { UnixClient } from './unix-client.ts';

const LIMITS = { dataBytes: 32, controlBytes: 4_096, limitMs: 20_000 };
const never = new AbortController().signal;

let directory: string;
let socketPath: string;
let server: net.Server;
let peers: net.Socket[];

/** Serves what each connection gets. */
async function serve(onConnection: (peer: net.Socket) => void): Promise<void> {
  server.on('connection', (peer) => {
    peers.push(peer);
    peer.on('error', () => undefined);
    onConnection(peer);
  });
  server.listen(socketPath);
  await once(server, 'listening');
}

function openFile(content: string): number {
  const file = path.join(directory, 'file');
  fs.writeFileSync(file, content);
  const fd = fs.openSync(file, 'r+');
  fs.unlinkSync(file);
  return fd;
}

/** Descriptors of this process, by what they lead to. */
function openDescriptors(): readonly string[] {
  return fs.readdirSync('/proc/self/fd').flatMap((fd) => {
    try {
      return [fs.readlinkSync(`/proc/self/fd/${fd}`)];
    } catch {
      return [];
    }
  });
}

const filesOpen = (): number => openDescriptors().filter((target) => target.startsWith(directory)).length;

beforeEach(() => {
  directory = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), 'virtwire-descriptors-')));
  socketPath = path.join(directory, 'sock');
  server = net.createServer();
  peers = [];
});

afterEach(() => {
  for (const peer of peers) peer.destroy();
  server.close();
  fs.rmSync(directory, { recursive: true });
});

describe('descriptors that go over a socket', () => {
  test('arrive as the same open file, each with one zero byte, and none is left over', async () => {
    const fd = openFile('through the socket');
    await serve((peer) => {
      using copies = copyDescriptors([fd, fd]);
      void copies.send(peer, never);
    });
    using client = await UnixClient.connect(socketPath, 5_000);
    for (let i = 0; i < 2; i++) {
      using message = await client.receive({ ...LIMITS, dataBytes: 1 });
      expect([...message.data]).toEqual([0]);
      expect(message.controlBytes).toBe(24);
      const [descriptor] = message.descriptors;
      expect(message.descriptors).toHaveLength(1);
      expect(fs.readFileSync(`/proc/self/fd/${descriptor?.fd ?? -1}`, 'utf8')).toBe('through the socket');
      expect(fs.readFileSync(`/proc/self/fdinfo/${descriptor?.fd ?? -1}`, 'utf8')).toMatch(/^flags:\t02\d{6}$/m);
    }
    expect(filesOpen()).toBe(1);
    fs.closeSync(fd);
  });

  test('are copies: their owner may close them at once', async () => {
    const fd = openFile('kept');
    await serve(() => undefined);
    const sender = net.connect(socketPath);
    await once(sender, 'connect');
    {
      using copies = copyDescriptors([fd]);
      fs.closeSync(fd);
      expect(filesOpen()).toBe(1);
      await copies.send(sender, never);
    }
    expect(filesOpen()).toBe(0);
    sender.destroy();
  });

  test('go after what the stream has written, and before what it writes next', async () => {
    const fd = openFile('x');
    await serve((peer) => {
      const copies = copyDescriptors([fd]);
      fs.closeSync(fd);
      peer.write('before', () => {
        void copies.send(peer, never).then(() => {
          copies[Symbol.dispose]();
          peer.end('after');
        });
      });
    });
    using client = await UnixClient.connect(socketPath, 5_000);
    let seen = '';
    for (;;) {
      using message = await client.receive({ ...LIMITS, dataBytes: 1 });
      if (message.data.length === 0) break;
      seen += message.descriptors.length > 0 ? `<${message.descriptors.length}>` : message.data.toString();
    }
    expect(seen).toBe('before<1>after');
  });

  test('are given up when the peer does not read and the signal comes', async () => {
    const fd = openFile('x');
    await serve((peer) => peer.pause());
    const sender = net.connect(socketPath);
    await once(sender, 'connect');
    const stop = new AbortController();
    using copies = copyDescriptors(Array.from({ length: 5_000 }, () => fd));
    const sending = copies.send(sender, stop.signal);
    stop.abort(new Error('enough'));
    await expect(sending).rejects.toMatchObject({ name: 'AbortError' });
    sender.destroy();
    fs.closeSync(fd);
  });

  test('are refused when they are not open, and nothing is kept', () => {
    using first = new Descriptor(openFile('y'));
    const before = filesOpen();
    expect(() => copyDescriptors([first.fd, 1_000_000])).toThrow(
      expect.objectContaining({ code: 'Syscall', errno: 'EBADF' }),
    );
    expect(filesOpen()).toBe(before);
  });

  test('do not go over what is no socket, or a socket that is closed', async () => {
    const fd = openFile('x');
    using copies = copyDescriptors([fd]);
    fs.closeSync(fd);
    const [pipe] = duplexPair();
    await expect(copies.send(pipe, never)).rejects.toMatchObject({ code: 'Syscall', errno: 'ENOTSOCK' });
    await serve(() => undefined);
    const sender = net.connect(socketPath);
    await once(sender, 'connect');
    sender.destroy();
    await expect(copies.send(sender, never)).rejects.toMatchObject({ code: 'Syscall', errno: 'ENOTSOCK' });
  });
});

describe('a peer', () => {
  test('that is not there', async () => {
    await expect(UnixClient.connect(socketPath, 1_000)).rejects.toMatchObject({ code: 'Syscall', errno: 'ENOENT' });
    const long = path.join(directory, 'x'.repeat(120));
    await expect(UnixClient.connect(long, 1_000)).rejects.toMatchObject({ errno: 'ENAMETOOLONG' });
  });

  test('that sends nothing', async () => {
    await serve(() => undefined);
    using client = await UnixClient.connect(socketPath, 1_000);
    await expect(client.receive({ ...LIMITS, limitMs: 30 })).rejects.toMatchObject({ code: 'MessageTimeout' });
  });

  test('that closes early', async () => {
    await serve((peer) => peer.end());
    using client = await UnixClient.connect(socketPath, 1_000);
    using message = await client.receive(LIMITS);
    expect([message.data.length, message.controlBytes, message.descriptors.length]).toEqual([0, 0, 0]);
  });

  test('that sends bytes alone, more than are asked for', async () => {
    await serve((peer) => peer.write('x'.repeat(100)));
    using client = await UnixClient.connect(socketPath, 1_000);
    using message = await client.receive(LIMITS);
    expect([message.data.length, message.controlBytes]).toEqual([32, 0]);
  });
});

test('a descriptor that is closed has no number any more', () => {
  const descriptor = new Descriptor(openFile('x'));
  descriptor[Symbol.dispose]();
  descriptor[Symbol.dispose]();
  expect(() => descriptor.fd).toThrow(expect.objectContaining({ errno: 'EBADF' }));
});
