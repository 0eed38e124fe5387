import { spawn } from 'node:child_process';
import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { once } from 'node:events';
import { expect, test } from 'vitest';
import { UnixClient } from '../src/index.ts';

/** A peer in another language: sends as many descriptors of one file as it is told to in one message. */
const PEER = `import os, socket, sys
l = socket.socket(socket.AF_UNIX); l.bind(sys.argv[1]); l.listen()
print('ready', flush=True)
c, _ = l.accept()
socket.send_fds(c, [b'z'], [os.open(sys.argv[2], os.O_RDONLY)] * int(sys.argv[3]))
sys.exit(0 if c.recv(1) == b'\\0' else 1)`;

/** Descriptors of this process that lead to a file. */
function openedTimes(file: string): number {
  return fs.readdirSync('/proc/self/fd').filter((fd) => {
    try {
      return fs.readlinkSync(`/proc/self/fd/${fd}`) === file;
    } catch {
      return false;
    }
  }).length;
}

test.each([
  ['253 descriptors in one message, as many as the kernel lets through', 253, 4_096, 253],
  ['more descriptors than there is room for', 200, 16 + 4 * 10, 10],
  ['one descriptor', 1, 24, 1],
])('%s: none is left once the message is done with', async (_title, sent, controlBytes, received) => {
  const directory = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), 'virtwire-descriptors-')));
  const [socketPath, file] = [path.join(directory, 'sock'), path.join(directory, 'file')];
  fs.writeFileSync(file, '');
  const peer = spawn('python3', ['-c', PEER, socketPath, file, String(sent)], { stdio: ['ignore', 'pipe', 'inherit'] });
  const closed = once(peer, 'close');
  try {
    await once(peer.stdout, 'data');
    {
      using client = await UnixClient.connect(socketPath, 5_000);
      using message = await client.receive({ dataBytes: 32, controlBytes, limitMs: 20_000 });
      expect(message.data.toString()).toBe('z');
      expect(message.descriptors).toHaveLength(received);
      expect(openedTimes(file)).toBe(received);
      client.send(Buffer.of(0));
    }
    expect((await closed)[0]).toBe(0);
    expect(openedTimes(file)).toBe(0);
  } finally {
    peer.kill('SIGKILL');
    fs.rmSync(directory, { recursive: true });
  }
});
