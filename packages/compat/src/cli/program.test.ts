import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { expect, test } from 'vitest';
import { COMMANDS } from './commands.ts';
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
  [['matrix', '--colour'], "virtwire compat matrix: Unknown option '--colour'"],
  [['matrix', '--html', '/no/such/folder/m.html'], '/no/such/folder/m.html cannot be written'],
  [['schema', '/no/such/path'], '/no/such/path does not exist'],
  [['help', 'dance'], 'unknown command dance'],
  [['probe', '--socket', '--as'], "Option '--socket' argument is ambiguous"],
  [['probe'], '--socket is needed'],
  [['probe', '--socket', '/no/socket'], '/no/socket does not exist: name the socket'],
  [['probe', '--socket', import.meta.filename], `${import.meta.filename} is no socket`],
  [['replay', import.meta.filename], `${import.meta.filename} is no .ndjson.br bundle`],
  [['schema', import.meta.filename], `${import.meta.filename} is neither .proto file nor descriptor set`],
  [['record', '--listen', '/tmp/x'], '--to and --out are needed'],
  [['replay'], 'name a folder'],
  [['run-handler'], 'start this from a matrix'],
  [['dance'], 'unknown command dance'],
])('%j cannot be checked, and says why', async (argv, text) => {
  const { io, errors } = terminal();
  expect(await runCompat(argv, io)).toBe(2);
  expect(errors.join('\n')).toContain(text);
});

test('help names every command', async () => {
  for (const argv of [['--help'], ['help']]) {
    const { io, out } = terminal();
    expect(await runCompat(argv, io)).toBe(0);
    for (const name of Object.keys(COMMANDS)) expect(out.join('\n')).toContain(`\n  ${name}`);
  }
});

test.each(Object.keys(COMMANDS))('%s --help prints the help of that command only', async (name) => {
  for (const argv of [
    [name, '--help'],
    [name, '-h'],
    ['help', name],
  ]) {
    const { io, out, errors } = terminal();
    expect(await runCompat(argv, io)).toBe(0);
    expect(errors).toEqual([]);
    expect(out.join('\n').startsWith(`Usage: virtwire compat ${name}`)).toBe(true);
    expect(out.join('\n')).toMatch(/\nExit codes: 0 .*; 1 .*; 2 could not check$/);
    const others = Object.keys(COMMANDS).filter((other) => other !== name);
    for (const other of others) expect(out.join('\n')).not.toContain(`compat ${other}`);
  }
});

test('every option of a command is in its help', () => {
  for (const { usage, options, run } of Object.values(COMMANDS)) {
    expect(run).toBeTypeOf('function');
    for (const option of usage.match(/--[a-z]+/g) ?? []) {
      expect(options.map(([name]) => name).join(' ')).toContain(option);
    }
  }
});
