import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

import { afterAll, beforeAll, expect, test } from 'vitest';

import { installPacked, type PackedProject } from './packed-project.ts';

const run = promisify(execFile);
const KIBIBYTE = 1_024;
const VITEST =
  'const describe = (_name: string, define: () => void): void => define();\nconst test = (_name: string, _run: (context: never) => unknown): void => undefined;';
const PROGRAM = `import { countCells, defineCompatSuite, runMatrix, startOurLauncher } from '@virtwire/compat';
import type { Cell, StartLauncher } from '@virtwire/compat';

export const launcher: StartLauncher = startOurLauncher;
export const failed = (cells: readonly Cell[]): number => countCells(cells).failed;
export const suite: typeof defineCompatSuite = defineCompatSuite;
export const matrix: typeof runMatrix = runMatrix;
`;

let project: PackedProject | undefined;
let reports: string;
beforeAll(async () => {
  reports = mkdtempSync(join(tmpdir(), 'virtwire-compat-packed-'));
  project = await installPacked(['@virtwire/compat']);
}, 300_000);
afterAll(() => {
  project?.[Symbol.dispose]();
  rmSync(reports, { recursive: true, force: true });
});

function directory(): string {
  if (project === undefined) throw new Error('compat was not installed');
  return project.directory;
}

test('the packed package has a command that runs the matrix, in a project with nothing else', async () => {
  const html = join(reports, 'matrix.html');
  const args = ['matrix', '--releases', 'v1.0,v1.9', '--scenarios', 'first-start,bad-requests', '--html', html];
  const program = join(directory(), 'node_modules/.bin/virtwire-compat');
  const { stdout } = await run(process.execPath, [program, ...args], { cwd: directory() });
  expect(stdout.trimEnd().split('\n').at(-1)).toBe('8 passed, 0 declared, 0 not built, 0 failed');
  expect(readFileSync(html, 'utf8')).toContain('Nothing is broken.');
});

test('its types fit a strict program', async () => {
  writeFileSync(join(directory(), 'program.ts'), PROGRAM);
  const tsc = join(import.meta.dirname, '../node_modules/typescript/bin/tsc');
  const options = ['--noEmit', '--strict', '--module', 'nodenext', '--target', 'es2024', '--types', 'node'];
  const lib = ['--lib', 'es2024,esnext.disposable,esnext.collection'];
  const { stdout } = await run(process.execPath, [tsc, ...options, ...lib, 'program.ts'], { cwd: directory() });
  expect(stdout).toBe('');
});

test('the TypeScript of the READMEs fits a strict program, with what the packages declare', async () => {
  const packages = join(directory(), 'node_modules/@virtwire');
  const examples = ['compat', 'shared-proto'].flatMap((name) => {
    const readme = readFileSync(join(packages, name, 'README.md'), 'utf8');
    return [...readme.matchAll(/```ts\n([^]*?)```/g)].map(([, code = '']) => code);
  });
  expect(examples.length).toBeGreaterThanOrEqual(4);
  const files = examples.map((code, i) => {
    const file = `readme-${i}.ts`;
    // Vitest is the reader's own.
    writeFileSync(join(directory(), file), code.replace(/import \{ describe, test \} from 'vitest';/, VITEST));
    return file;
  });
  const tsc = join(import.meta.dirname, '../node_modules/typescript/bin/tsc');
  const options = ['--noEmit', '--strict', '--module', 'nodenext', '--target', 'es2024', '--types', 'node'];
  const lib = ['--lib', 'es2024,esnext.disposable,esnext.collection', '--skipLibCheck', 'false'];
  const { stdout } = await run(process.execPath, [tsc, ...options, ...lib, ...files], { cwd: directory() });
  expect(stdout).toBe('');
});

test('its command compares schemas, replays, and probes nobody, each with its exit code', async () => {
  const program = join(directory(), 'node_modules/.bin/virtwire-compat');
  const ended = async (...args: readonly string[]): Promise<{ code: number; output: string }> => {
    try {
      const { stdout } = await run(process.execPath, [program, ...args], { cwd: directory() });
      return { code: 0, output: stdout };
    } catch (caught) {
      const { code, stdout, stderr } = caught as { code: number; stdout: string; stderr: string };
      return { code, output: stdout + stderr };
    }
  };
  const root = join(import.meta.dirname, '..');
  expect(await ended('schema', join(root, 'proto'))).toMatchObject({ code: 0 });
  const samples = await ended('replay', join(root, 'testdata/wire-samples.ndjson.br'));
  expect(samples).toMatchObject({ code: 0, output: expect.stringContaining('0 problems') as string });
  expect(await ended('probe', '--socket', '/no/such/socket')).toMatchObject({ code: 2 });
  expect(await ended('rules')).toMatchObject({ code: 0 });
});

test('it is small, and what it needs is small', () => {
  const sizeOf = (name: string): number => {
    const file = readdirSync(join(directory(), 'tarballs')).find((tarball) => tarball.startsWith(`virtwire-${name}-`));
    return file === undefined ? Infinity : statSync(join(directory(), 'tarballs', file)).size;
  };
  expect(sizeOf('compat')).toBeLessThan(300 * KIBIBYTE);
  expect(sizeOf('shared-proto')).toBeLessThan(200 * KIBIBYTE);
});

test('it holds no sources and no tests', () => {
  const packed = join(directory(), 'node_modules/@virtwire/compat');
  expect(existsSync(join(packed, 'src'))).toBe(false);
  expect(existsSync(join(packed, 'dist/mutants'))).toBe(false);
});
