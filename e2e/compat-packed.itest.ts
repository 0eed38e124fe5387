import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

import { afterAll, beforeAll, expect, test } from 'vitest';

import { installPacked, type PackedProject } from './packed-project.ts';

const run = promisify(execFile);
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

test('it holds no sources and no tests', () => {
  const packed = join(directory(), 'node_modules/@virtwire/compat');
  expect(existsSync(join(packed, 'src'))).toBe(false);
  expect(existsSync(join(packed, 'dist/mutants'))).toBe(false);
});
