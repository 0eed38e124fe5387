import { randomBytes } from 'node:crypto';
import type { Socket } from 'node:net';
import { join } from 'node:path';

import { afterEach, beforeEach, describe, expect, test } from 'vitest';

import { createProxySink } from './sink.ts';
import { dial, listen, memoryLogger, readAll, tempDirectory, until } from './testing/sockets.ts';

let directory: ReturnType<typeof tempDirectory>;
let pipePath: string;
let targetPath: string;
beforeEach(() => {
  directory = tempDirectory();
  pipePath = join(directory.path, 'pipe.sock');
  targetPath = join(directory.path, 'target.sock');
});
afterEach(() => directory[Symbol.dispose]());

/** A pipe to the target, without a pod. */
async function openPipe(): Promise<AsyncDisposable & { readonly lines: string[] }> {
  const { log, lines } = memoryLogger();
  const listener = await listen(pipePath, createProxySink(log, targetPath), { allowHalfOpen: true });
  return { lines, [Symbol.asyncDispose]: () => listener[Symbol.asyncDispose]() };
}

const MEBIBYTE = 1_048_576;

describe('FM-2.2 half-close', () => {
  test('10 MiB and then the end: every byte arrives, and both directions close', async () => {
    const received: Promise<Buffer>[] = [];
    await using _target = await listen(targetPath, (socket) => received.push(readAll(socket)));
    await using _pipe = await openPipe();
    const launcher = await dial(pipePath);
    const sent = randomBytes(10 * MEBIBYTE);
    const closed = readAll(launcher);
    launcher.end(sent);
    await until(() => received.length === 1, 'the target is dialled');
    expect((await received[0])?.equals(sent)).toBe(true);
    expect(await closed).toHaveLength(0);
  });

  test('an answer that the target sends before its end arrives', async () => {
    const answer = randomBytes(MEBIBYTE);
    await using _target = await listen(targetPath, (socket) => socket.end(answer));
    await using _pipe = await openPipe();
    const launcher = await dial(pipePath);
    expect((await readAll(launcher)).equals(answer)).toBe(true);
  });
});

describe('FM-2.1 reconnect', () => {
  test('every connection dials the target anew, over three restarts of it', async () => {
    await using _pipe = await openPipe();
    for (const word of ['one', 'two', 'three']) {
      await using _target = await listen(targetPath, (socket) => socket.end(word));
      expect((await readAll(await dial(pipePath))).toString()).toBe(word);
    }
  });

  test('a target that is not there closes the connection instead of parking it', async () => {
    await using pipe = await openPipe();
    const launcher = await dial(pipePath);
    expect(await readAll(launcher)).toHaveLength(0);
    expect(pipe.lines).toEqual(['error connecting for proxy connection']);
  });

  test('a target that is cut off closes the launcher', async () => {
    const targets: Socket[] = [];
    await using _target = await listen(targetPath, (socket) => targets.push(socket));
    await using _pipe = await openPipe();
    const launcher = await dial(pipePath);
    await until(() => targets.length === 1, 'the target is dialled');
    targets[0]?.destroy();
    expect(await readAll(launcher)).toHaveLength(0);
  });
});

describe('peers', () => {
  test('a quiet launcher holds its connection, and its end reaches the target', async () => {
    const targets: Socket[] = [];
    await using _target = await listen(targetPath, (socket) => targets.push(socket));
    await using pipe = await openPipe();
    const launcher = await dial(pipePath);
    await until(() => targets.length === 1, 'the target is dialled');
    const target = targets[0];
    if (target === undefined) throw new Error('no target');
    const closed = readAll(target);
    launcher.destroy();
    expect(await closed).toHaveLength(0);
    await until(() => pipe.lines.includes('gracefully closed notify pipe connection'), 'the end is logged');
  });

  test('a slow target slows the launcher down', async () => {
    const targets: Socket[] = [];
    await using _target = await listen(targetPath, (socket) => void targets.push(socket.pause()));
    await using _pipe = await openPipe();
    const launcher = await dial(pipePath);
    let taken = 0;
    const block = Buffer.alloc(65_536);
    const pump = (): void => {
      while (taken < 64 * MEBIBYTE) {
        taken += block.length;
        if (!launcher.write(block)) return void launcher.once('drain', pump);
      }
    };
    pump();
    await until(() => targets.length === 1 && launcher.writableNeedDrain, 'the launcher has to wait');
    expect(taken).toBeLessThan(8 * MEBIBYTE);
    launcher.destroy();
  });

  test('a launcher that is gone before the target is dialled leaves nothing open', async () => {
    const targets: Socket[] = [];
    await using _target = await listen(targetPath, (socket) => targets.push(socket.resume()));
    await using _pipe = await openPipe();
    for (let i = 0; i < 20; i++) (await dial(pipePath)).destroy();
    const isDone = (): boolean => targets.every((socket) => socket.destroyed || socket.readableEnded);
    await until(isDone, 'every target has seen the end');
    expect(isDone()).toBe(true);
  });
});
