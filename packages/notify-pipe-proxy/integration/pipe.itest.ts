import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { type NotifyHandlers, serveNotify } from '@virtwire/shared-proto';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';

import { createNotifyPipe, createProxySink } from '../src/index.ts';
import { listen, memoryLogger, tempDirectory, until } from '../src/testing/sockets.ts';
import { type Pod, startPod } from './pod.ts';

const QEMU = { uid: 107, gid: 107 };

let pod: Pod;
let directory: ReturnType<typeof tempDirectory>;
let target: string;
beforeEach(async () => {
  pod = await startPod();
  directory = tempDirectory();
  target = join(directory.path, 'domain-notify.sock');
});
afterEach(async () => {
  await pod[Symbol.asyncDispose]();
  directory[Symbol.dispose]();
});

/** A target that answers with what it has heard. */
const listenEcho = (): Promise<AsyncDisposable> =>
  listen(
    target,
    (socket) => {
      const heard: Buffer[] = [];
      socket.on('data', (chunk: Buffer) => heard.push(chunk));
      socket.once('end', () => socket.end(`heard ${Buffer.concat(heard).toString()}`));
    },
    { allowHalfOpen: true },
  );

describe('a pipe into a real mount namespace', () => {
  test('is in the pod, not on the node, and belongs to the launcher', async () => {
    await using _echo = await listenEcho();
    const { log } = memoryLogger();
    const deps = { log, sink: createProxySink(log, target) };
    await using pipe = await createNotifyPipe(deps, { pod: { pid: pod.pid }, owner: QEMU });
    expect(await pod.run('stat', '-c', '%u:%g %F', pipe.pathInPod)).toBe('107:107 socket\n');
    expect(await pod.talk(107, 'an event')).toBe('heard an event');
    expect(await pod.talk(0, 'from root')).toBe('heard from root');
    expect(await pod.talk(1_000, 'from a stranger')).toBe('EACCES');
    expect(existsSync(`/proc/${pod.pid}/root/run/kubevirt/domain-notify-pipe.sock`)).toBe(true);
  });

  test('works again after the handler has come back', async () => {
    await using _echo = await listenEcho();
    const { log } = memoryLogger();
    const deps = { log, sink: createProxySink(log, target) };
    const first = await createNotifyPipe(deps, { pod: { pid: pod.pid }, owner: QEMU });
    await first.close();
    expect(await pod.talk(107, 'nobody')).toBe('ENOENT');
    await using _second = await createNotifyPipe(deps, { pod: { pid: pod.pid }, owner: QEMU });
    expect(await pod.talk(107, 'again')).toBe('heard again');
  });

  test('FM-13.1 a link to the node in the pod leads nowhere', async () => {
    await pod.run('sh', '-c', `rmdir /run/kubevirt && ln -s ${directory.path} /run/kubevirt`);
    const { log } = memoryLogger();
    const deps = { log, sink: createProxySink(log, target) };
    // The pod sees the node's /tmp here; the link is followed inside the pod's root and so finds the pod's own view.
    await using pipe = await createNotifyPipe(deps, { pod: { pid: pod.pid }, directory: '/run/kubevirt' });
    expect(pipe.isInPlace()).toBe(true);
    expect(await pod.run('readlink', '/run/kubevirt')).toBe(`${directory.path}\n`);
  });
});

describe('the binary', () => {
  const main = join(import.meta.dirname, '../src/main.ts');
  const start = (...args: readonly string[]): ReturnType<typeof spawn> =>
    spawn(process.execPath, ['-C', '@virtwire/source', main, ...args], { stdio: ['ignore', 'inherit', 'pipe'] });
  const startProxy = async (): Promise<ReturnType<typeof spawn>> => {
    const child = start('--pod-pid', `${pod.pid}`, '--target', target, '--owner', '107:107');
    let log = '';
    child.stderr?.on('data', (chunk: Buffer) => (log += chunk.toString()));
    await until(() => log.includes('serving the notify pipe'), 'the proxy serves');
    return child;
  };

  test('carries the notify protocol of a launcher to the notify server', async () => {
    const seen: string[] = [];
    const handlers: NotifyHandlers = {
      handleDomainEvent: async ({ eventType }, { identity }) =>
        void seen.push(`${eventType} ${identity?.name ?? 'of nobody'}`),
      handleK8sEvent: async () => undefined,
    };
    await using _server = await serveNotify(target, handlers);
    const proxy = await startProxy();
    const launcher = fileURLToPath(import.meta.resolve('./launcher.ts'));
    expect(await pod.run(process.execPath, '-C', '@virtwire/source', launcher)).toBe('true');
    expect(seen).toEqual(['MODIFIED of nobody']);
    proxy.kill('SIGTERM');
    expect((await once(proxy, 'exit'))[0]).toBe(0);
    expect(await pod.talk(107, 'gone')).toBe('ENOENT');
  });

  test('ends with 3 when the pod ends', async () => {
    const proxy = await startProxy();
    const ended = once(proxy, 'exit');
    pod.kill();
    expect((await ended)[0]).toBe(3);
  });

  test('ends with 1 when there is no such pod, and with 2 when it is used wrongly', async () => {
    expect((await once(start('--pod-pid', '4194303', '--target', target), 'exit'))[0]).toBe(1);
    expect((await once(start('--target', target), 'exit'))[0]).toBe(2);
  });
});
