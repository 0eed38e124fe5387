import * as fs from 'node:fs';
import * as net from 'node:net';
import * as os from 'node:os';
import * as path from 'node:path';
import { once } from 'node:events';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { HostError } from '../errors.ts';
import { listenUnix } from '../paths/unix-socket.ts';
import { SafePath } from '../paths/safe-path.ts';
import { startProcess } from '../tools/start-process.ts';
import { getLimit, setLimit } from './limits.ts';
import { isMountPoint, parseMountInfo, readMounts } from './mountinfo.ts';
import { peerCredentials } from './peer.ts';
import { PidHandle } from './pid-handle.ts';
import { childrenOf, parseProcessStat, readCommandLine, readNamespacePid, readProcessStat } from './proc.ts';

let directory: string;

beforeEach(() => {
  directory = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), 'virtwire-process-')));
});

afterEach(() => {
  fs.rmSync(directory, { recursive: true });
});

async function until(condition: () => boolean): Promise<void> {
  const deadline = Date.now() + 20_000;
  while (!condition()) {
    if (Date.now() > deadline) throw new Error('the condition did not come true');
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

describe('/proc', () => {
  test('a program name may hold brackets and blanks', () => {
    const line = `42 (a) b (c) S 7 ${Array.from({ length: 17 }, (_, i) => i).join(' ')} 98765 0`;
    expect(parseProcessStat(line)).toEqual({ pid: 42, comm: 'a) b (c', state: 'S', parentPid: 7, startTicks: 98765n });
  });

  test('shows this process and its children', async () => {
    const child = await startProcess('sleep', ['600']);
    try {
      expect(readProcessStat(process.pid).parentPid).toBe(process.ppid);
      await until(() => childrenOf(process.pid).some((c) => c.pid === child.pid && c.comm === 'sleep'));
      expect(readCommandLine(child.pid)).toEqual(['sleep', '600']);
      expect(readNamespacePid(child.pid)).toBe(child.pid);
    } finally {
      child.kill('SIGKILL');
      await child.exited;
    }
    expect(() => readProcessStat(child.pid)).toThrow(`failed to find process with pid: ${child.pid}`);
  });

  test('mount points are read with their escapes undone', () => {
    const line = '36 35 98:0 /mnt1 /mnt\\040a\\134b rw,noatime master:1 - ext3 /dev/root rw,errors=continue';
    expect(parseMountInfo(`${line}\n`)).toEqual([
      {
        id: 36,
        parentId: 35,
        device: '98:0',
        root: '/mnt1',
        mountPoint: '/mnt a\\b',
        options: ['rw', 'noatime'],
        fsType: 'ext3',
        source: '/dev/root',
        superOptions: ['rw', 'errors=continue'],
      },
    ]);
    expect(isMountPoint('/')).toBe(true);
    expect(isMountPoint('/proc', readMounts())).toBe(true);
    expect(isMountPoint(directory)).toBe(false);
  });
});

describe('a pid handle', () => {
  test('notices the end, and signals nobody else afterwards', async () => {
    const child = await startProcess('sleep', ['600']);
    using handle = PidHandle.open(child.pid);
    expect(handle.isAlive()).toBe(true);
    expect(handle.stat().startTicks).toBe(handle.startTicks);
    const gone = handle.exited();
    expect(handle.signal('SIGTERM')).toBe(true);
    await gone;
    expect((await child.exited).signal).toBe('SIGTERM');
    expect([handle.isAlive(), handle.signal('SIGTERM')]).toEqual([false, false]);
    expect(() => handle.stat()).toThrow(HostError);
  });

  test('waiting ends with its signal', async () => {
    using handle = PidHandle.open(process.pid);
    const stop = new AbortController();
    const wait = handle.exited(stop.signal);
    stop.abort();
    await expect(wait).rejects.toThrow();
  });

  test('there is none of a process that is not there', () => {
    expect(() => PidHandle.open(0x3fffff)).toThrow('failed to find process with pid');
  });
});

describe('a unix socket in a directory of others', () => {
  test('tells who listens, and replaces what was there before', async () => {
    fs.writeFileSync(path.join(directory, 'sock'), 'old');
    using dir = SafePath.openRoot(directory);
    const server = net.createServer();
    using socket = await listenUnix(server, dir, 'sock');
    expect(socket.stat().isSocket()).toBe(true);
    const peer = { pid: process.pid, uid: process.getuid?.(), gid: process.getgid?.() };
    expect(await peerCredentials(path.join(directory, 'sock'))).toEqual(peer);
    expect(await peerCredentials(socket)).toEqual(peer);
    const client = net.connect(socket.procPath);
    await once(client, 'connect');
    client.destroy();
    server.close();
    await once(server, 'close');
    expect(fs.readdirSync(directory)).toEqual([]);
  });

  test('has room for paths beyond the kernel’s 107 bytes', async () => {
    const deep = path.join(directory, 'x'.repeat(120), 'y'.repeat(120));
    fs.mkdirSync(deep, { recursive: true });
    using dir = SafePath.openRoot(deep);
    const server = net.createServer();
    (await listenUnix(server, dir, 'launcher-sock'))[Symbol.dispose]();
    expect((await peerCredentials(path.join(deep, 'launcher-sock'))).pid).toBe(process.pid);
    server.close();
    await once(server, 'close');
  });

  test('FM-13.1 is not reached through a link', async () => {
    using dir = SafePath.openRoot(directory);
    const server = net.createServer();
    (await listenUnix(server, dir, 'real'))[Symbol.dispose]();
    fs.symlinkSync('real', path.join(directory, 'sock'));
    await expect(peerCredentials(path.join(directory, 'sock'))).rejects.toMatchObject({ code: 'UnsafePath' });
    server.close();
    await once(server, 'close');
  });

  test('a dead one is refused at once, a full backlog after the limit', async () => {
    using dir = SafePath.openRoot(directory);
    const server = net.createServer();
    (await listenUnix(server, dir, 'sock'))[Symbol.dispose]();
    fs.linkSync(path.join(directory, 'sock'), path.join(directory, 'dead'));
    server.close();
    await once(server, 'close');
    await expect(peerCredentials(path.join(directory, 'dead'))).rejects.toMatchObject({ errno: 'ECONNREFUSED' });
    const script = `import socket,time
s=socket.socket(socket.AF_UNIX); s.bind(${JSON.stringify(path.join(directory, 'full'))}); s.listen(0)
c=socket.socket(socket.AF_UNIX); c.connect(${JSON.stringify(path.join(directory, 'full'))}); print("ready",flush=True); time.sleep(600)`;
    let isReady = false;
    const child = await startProcess('python3', ['-c', script], { onLine: () => (isReady = true) });
    try {
      await until(() => isReady);
      await expect(peerCredentials(path.join(directory, 'full'), 60)).rejects.toMatchObject({ code: 'ConnectTimeout' });
    } finally {
      child.kill('SIGKILL');
      await child.exited;
    }
  });
});

test('a limit of another process is set and read back', async () => {
  const child = await startProcess('sleep', ['600']);
  try {
    const { hard } = getLimit(child.pid, 'nofile');
    setLimit(child.pid, 'nofile', { soft: 100n, hard });
    expect(getLimit(child.pid, 'nofile')).toEqual({ soft: 100n, hard });
    expect(fs.readFileSync(`/proc/${child.pid}/limits`, 'utf8')).toMatch(/Max open files\s+100 /);
    expect(() => setLimit(child.pid, 'nofile', { soft: 200n, hard: 100n })).toThrow('EINVAL');
  } finally {
    child.kill('SIGKILL');
    await child.exited;
  }
});
