import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import type { Socket } from 'node:net';
import { join } from 'node:path';

import { SafePath } from '@virtwire/host';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';

import { PIPE_ERROR_CODES } from './errors.ts';
import { createNotifyPipe, type NotifyPipe, type NotifyPipeOptions } from './pipe.ts';
import { dial, memoryLogger, readAll, tempDirectory, until } from './testing/sockets.ts';

let pod: ReturnType<typeof tempDirectory>;
let inPod: string;
let lines: string[];
let taken: Socket[];
let onTaken: (connection: Socket) => void;
beforeEach(() => {
  pod = tempDirectory();
  inPod = join(pod.path, 'run/kubevirt');
  mkdirSync(inPod, { recursive: true });
  // As in an image: an absolute link that is meant inside the pod's root.
  mkdirSync(join(pod.path, 'var'));
  symlinkSync('/run', join(pod.path, 'var/run'));
  taken = [];
  onTaken = (connection) => connection.resume().end('handler');
});
afterEach(() => pod[Symbol.dispose]());

async function inject(options: Partial<NotifyPipeOptions> = {}): Promise<NotifyPipe> {
  using root = SafePath.openRoot(pod.path);
  const logger = memoryLogger();
  lines = logger.lines;
  const sink = (connection: Socket): void => {
    taken.push(connection);
    onTaken(connection);
  };
  return await createNotifyPipe({ log: logger.log, sink }, { pod: { root }, ...options });
}

const socketPath = (): string => join(inPod, 'domain-notify-pipe.sock');

describe('the pipe in a pod', () => {
  test('is where the launcher looks for it, through the links of the pod, and leads to the sink', async () => {
    await using pipe = await inject();
    expect(pipe.pathInPod).toBe('/var/run/kubevirt/domain-notify-pipe.sock');
    expect(readdirSync(inPod)).toEqual(['domain-notify-pipe.sock']);
    expect((await readAll(await dial(socketPath()))).toString()).toBe('handler');
    expect(lines).toEqual(['Accepted new notify pipe connection']);
  });

  test('goes away when it is closed, and what it has accepted stays', async () => {
    onTaken = (connection) => connection.resume();
    const pipe = await inject();
    const launcher = await dial(socketPath());
    await until(() => taken.length === 1, 'it is accepted');
    await pipe.close();
    await pipe.close();
    expect(readdirSync(inPod)).toEqual([]);
    expect(taken[0]?.destroyed).toBe(false);
    launcher.destroy();
    expect(lines.filter((line) => line === 'closing notify pipe listener for vmi')).toHaveLength(1);
  });

  test('replaces the socket of an earlier handler, which then removes nothing', async () => {
    const old = await inject();
    await using pipe = await inject();
    expect(old.isInPlace()).toBe(false);
    expect(pipe.isInPlace()).toBe(true);
    await old.close();
    expect((await readAll(await dial(socketPath()))).toString()).toBe('handler');
  });

  test('notices that the pod has removed it', async () => {
    await using pipe = await inject();
    rmSync(socketPath());
    expect(pipe.isInPlace()).toBe(false);
  });

  test('goes into another directory under another name if asked to', async () => {
    mkdirSync(join(pod.path, 'elsewhere'));
    await using _pipe = await inject({ directory: '/elsewhere', socketName: 'p.sock' });
    expect(readdirSync(join(pod.path, 'elsewhere'))).toEqual(['p.sock']);
  });

  test('FM-13.7 takes 64 connections at most', async () => {
    onTaken = (connection) => connection.resume().once('end', () => connection.end());
    await using pipe = await inject();
    const open = await Promise.all(Array.from({ length: 64 }, () => dial(socketPath())));
    await until(() => pipe.connectionCount === 64, 'all are accepted');
    const refused = await dial(socketPath());
    expect((await readAll(refused)).toString()).toBe('');
    expect(lines.at(-1)).toBe('refused a notify pipe connection: too many are open');
    for (const launcher of open) launcher.destroy();
    await until(() => pipe.connectionCount === 0, 'they are forgotten');
  });
});

describe('FM-13.1 and FM-13.3: nothing in a pod is trusted', () => {
  test('a link in the place of the socket is replaced, and what it points to stays', async () => {
    using outside = tempDirectory();
    const victim = join(outside.path, 'victim');
    writeFileSync(victim, 'precious');
    symlinkSync(victim, socketPath());
    await using _pipe = await inject({ owner: { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 } });
    expect(readFileSync(victim, 'utf8')).toBe('precious');
    expect(lstatSync(socketPath()).isSocket()).toBe(true);
  });

  test('a directory that is a link to the outside leads inside the root instead', async () => {
    using outside = tempDirectory();
    rmSync(inPod, { recursive: true });
    symlinkSync(outside.path, inPod);
    await expect(inject()).rejects.toMatchObject({ code: 'InjectFailed' });
    expect(readdirSync(outside.path)).toEqual([]);
  });

  test.each<[string, () => void]>([
    ['a file', () => writeFileSync(socketPath(), 'old')],
    ['an empty directory', () => mkdirSync(socketPath())],
    ['a dangling link', () => symlinkSync('/nowhere', socketPath())],
  ])('%s in its place is replaced', async (_what, prepare) => {
    prepare();
    await using pipe = await inject();
    expect(pipe.isInPlace()).toBe(true);
  });

  test('a directory with content in its place is an error, and nothing stays behind', async () => {
    mkdirSync(join(socketPath(), 'content'), { recursive: true });
    await expect(inject()).rejects.toMatchObject({ code: 'InjectFailed' });
    expect(readdirSync(inPod)).toEqual(['domain-notify-pipe.sock']);
  });

  test('a directory that is missing is an error in the words of KubeVirt', async () => {
    rmSync(inPod, { recursive: true });
    await expect(inject()).rejects.toThrow(/^failed to create unix socket for proxy service: /);
  });

  test('a process that is gone is an error', async () => {
    const { log } = memoryLogger();
    const deps = { log, sink: () => undefined };
    await expect(createNotifyPipe(deps, { pod: { pid: 2 ** 22 - 1 } })).rejects.toMatchObject({ code: 'PodGone' });
  });
});

test('the README lists exactly the codes of errors', () => {
  const readme = readFileSync(join(import.meta.dirname, '../README.md'), 'utf8');
  const listed = Array.from(readme.matchAll(/^\| `([A-Z][A-Za-z]+)` +\|/gm), (match) => match[1]);
  expect(listed).toEqual([...PIPE_ERROR_CODES]);
  expect(existsSync(join(import.meta.dirname, 'errors.ts'))).toBe(true);
});
