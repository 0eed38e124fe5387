import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { runTool } from '../src/index.ts';

const ROOT = path.resolve(import.meta.dirname, '../../..');

async function runFixture(unshare: readonly string[], fixture: URL, ...args: string[]): Promise<unknown> {
  const program = [process.execPath, '-C', '@virtwire/source', fileURLToPath(fixture)];
  const { stdout } = await runTool('unshare', [...unshare, ...program, ...args], { cwd: ROOT, timeoutMs: 120_000 });
  return JSON.parse(stdout);
}

test('FM-9.1 PID 1 collects every orphan and none of Node’s own children', async () => {
  expect(await runFixture(['--pid', '--fork', '--mount-proc'], new URL('./pid-one.ts', import.meta.url))).toEqual({
    pid: 1,
    children: Array.from({ length: 20 }, (_, i) => i),
    missing: 0,
    isKnownOneFirst: true,
    codes: [
      [7, null],
      [null, 'SIGKILL'],
    ],
  });
});

test('mounts, device nodes and unmounts through held paths', async () => {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'virtwire-mounts-'));
  try {
    expect(
      await runFixture(['--mount', '--propagation', 'private'], new URL('./mounts.ts', import.meta.url), directory),
    ).toEqual({
      isReadOnly: 'EROFS',
      wasMounted: true,
      merged: ['above', 'below'],
      lower: ['below'],
      bound: '1',
      nullIsEmpty: true,
      missing: 'ENOENT',
      unmounted: [true, true, true, true],
      again: false,
      isMounted: false,
      work: true,
    });
  } finally {
    fs.rmSync(directory, { recursive: true });
  }
});
