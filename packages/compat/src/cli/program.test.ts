import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { expect, test } from 'vitest';
import type { CompatProcess } from './process.ts';
import { runCompat } from './program.ts';

function terminal(): { readonly io: CompatProcess; readonly out: string[]; readonly errors: string[] } {
  const out: string[] = [];
  const errors: string[] = [];
  const io: CompatProcess = {
    line: (text) => void out.push(text),
    error: (text) => void errors.push(text),
    input: Readable.from([]),
    signals: process,
    env: {},
  };
  return { io, out, errors };
}

test('matrix runs the cells it is told, writes the reports and ends with the counts', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'virtwire-compat-'));
  const { io, out } = terminal();
  const files = ['junit', 'json', 'html'].flatMap((kind) => [`--${kind}`, join(directory, kind)]);
  const args = ['matrix', '--releases', 'v1.4', '--scenarios', 'first-start', ...files];
  expect(await runCompat(args, io)).toBe(0);
  expect(out.at(-1)).toBe('2 passed, 0 declared, 0 not built, 0 failed');
  expect(readFileSync(join(directory, 'html'), 'utf8')).toContain('Nothing is broken.');
  expect(existsSync(join(directory, 'junit'))).toBe(true);
  rmSync(directory, { recursive: true });
});

test('a cell that fails makes exit code 1', async () => {
  const { io, out } = terminal();
  const args = ['matrix', '--releases', 'v1.4', '--scenarios', 'first-start', '--new-handler', '/no/such/binary'];
  expect(await runCompat([...args, '--only', 'handler'], io)).toBe(1);
  expect(out.at(-1)).toBe('0 passed, 0 declared, 0 not built, 1 failed');
});

test.each([
  [['matrix', '--releases', 'v9.9'], 'unknown release v9.9'],
  [['matrix', '--scenarios', 'nap'], 'unknown scenario nap'],
  [['matrix', '--colour'], "Unknown option '--colour'"],
  [['probe'], '--socket is needed'],
  [['probe', '--socket', '/no/socket'], '/no/socket does not exist: name the socket'],
  [['probe', '--socket', import.meta.filename], `${import.meta.filename} is no socket`],
  [['replay', import.meta.filename], `${import.meta.filename} is no .ndjson.gz bundle`],
  [['schema', import.meta.filename], `${import.meta.filename} is neither .proto file nor descriptor set`],
  [['record', '--listen', '/tmp/x'], '--to and --out are needed'],
  [['replay'], 'name a folder'],
  [['run-handler'], 'start this from a matrix'],
  [['dance'], 'unknown command dance'],
])('%j is wrong usage, and says why', async (argv, text) => {
  const { io, errors } = terminal();
  expect(await runCompat(argv, io)).toBe(2);
  expect(errors.join('\n')).toContain(text);
});

test('help names every command', async () => {
  const { io, out } = terminal();
  expect(await runCompat(['--help'], io)).toBe(0);
  for (const name of ['matrix', 'replay', 'probe', 'record']) expect(out.join('\n')).toContain(`\n  ${name}`);
});
