import * as fs from 'node:fs';
import { describe, expect, test } from 'vitest';
import { runTool } from './run-tool.ts';
import { startProcess } from './start-process.ts';

const sh = (script: string, options: Parameters<typeof runTool>[2] = {}): ReturnType<typeof runTool> =>
  runTool('sh', ['-c', script], options);

/** Open descriptors, once the pipes of the last tool are closed. */
async function descriptors(): Promise<number> {
  await new Promise((resolve) => setImmediate(resolve));
  await new Promise((resolve) => setImmediate(resolve));
  return fs.readdirSync('/proc/self/fd').length;
}

describe('a tool', () => {
  test('gets its arguments as they are and gives back what it says', async () => {
    const { stdout, stderr, code } = await sh('printf "%s|" "$@"; echo no >&2', {});
    expect([stdout, stderr, code]).toEqual(['|', 'no\n', 0]);
    expect((await runTool('printf', ['%s|', 'a b', '$HOME', "'"])).stdout).toBe("a b|$HOME|'|");
  });

  test('reads its standard input to the end, however long', async () => {
    const stdin = 'line\n'.repeat(400_000);
    expect((await runTool('wc', ['-c'], { stdin })).stdout.trim()).toBe(String(stdin.length));
    expect((await runTool('cat', [])).stdout).toBe('');
    expect((await runTool('true', [], { stdin })).code).toBe(0);
  });

  test('runs with the environment and directory that it is given', async () => {
    const { stdout } = await sh('echo "$VALUE $(pwd)"', {
      env: { PATH: process.env['PATH'], VALUE: 'v' },
      cwd: '/usr',
    });
    expect(stdout).toBe('v /usr\n');
  });

  test('starts with signals as they are by default, although Node ignores SIGPIPE', async () => {
    expect((await sh('grep SigIgn /proc/self/status')).stdout).toMatch(/SigIgn:\s+0+$/m);
  });

  test('that fails says so in its own words', async () => {
    await expect(sh('echo broken >&2; exit 3')).rejects.toMatchObject({
      code: 'ToolFailed',
      message: /exit status 3: broken/,
    });
    await expect(sh('kill -9 $$')).rejects.toMatchObject({ code: 'ToolFailed', message: /signal 9/ });
    expect((await sh('exit 3', { okCodes: [0, 3] })).code).toBe(3);
    await expect(runTool('no-such-tool', [])).rejects.toMatchObject({ code: 'ToolNotFound' });
  });

  test('is killed when it takes too long, says too much, or is not wanted any more', async () => {
    await expect(sh('sleep 600', { timeoutMs: 30 })).rejects.toMatchObject({ code: 'ToolTimeout' });
    await expect(sh('yes', { maxOutputBytes: 10_000 })).rejects.toMatchObject({ code: 'ToolOutputTooLarge' });
    const stop = new AbortController();
    const work = sh('sleep 600', { signal: stop.signal });
    stop.abort(new Error('not wanted'));
    await expect(work).rejects.toThrow('not wanted');
    await expect(sh('true', { signal: stop.signal })).rejects.toThrow('not wanted');
  });

  test('is done when it ends, even if a child of its own keeps its output open', async () => {
    const { stdout } = await sh('sleep 5 & echo done');
    expect(stdout).toBe('done\n');
  });

  test('leaves no descriptor open, 200 times over', async () => {
    await sh('true');
    const before = await descriptors();
    for (let i = 0; i < 200; i++) await runTool('true', []);
    await expect(runTool('no-such-tool', [])).rejects.toThrow();
    expect(await descriptors()).toBe(before);
  });

  test('many at a time each get their own answer', async () => {
    const answers = await Promise.all(Array.from({ length: 40 }, (_, i) => sh(`echo ${i}`)));
    expect(answers.map((a) => a.stdout.trim())).toEqual(Array.from({ length: 40 }, (_, i) => String(i)));
  });
});

describe('a process that stays', () => {
  test('gives its lines and its end', async () => {
    const lines: string[] = [];
    const started = await startProcess('sh', ['-c', 'echo out; echo err >&2; sleep 600'], {
      onLine: (line, stream) => lines.push(`${stream} ${line}`),
    });
    await expect.poll(() => lines.toSorted(), { timeout: 20_000 }).toEqual(['stderr err', 'stdout out']);
    expect(started.kill('SIGTERM')).toBe(true);
    expect(await started.exited).toEqual({ code: null, signal: 'SIGTERM' });
    expect(started.kill('SIGTERM')).toBe(false);
  });

  test('that cannot start is an error', async () => {
    await expect(startProcess('/no/such/daemon', [])).rejects.toMatchObject({ code: 'ToolNotFound' });
  });
});
