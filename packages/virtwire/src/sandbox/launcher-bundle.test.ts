import { mkdirSync, mkdtempSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { RunTool } from '../machine/run-tool.ts';
import { launcherProgram } from './launcher-bundle.ts';

let root = '';
let runs: string[][] = [];

const file = (path: string, text = ''): void => {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  writeFileSync(join(root, path), text);
};
const installation = () => ({
  ...{ root, node: 'node_modules/.bin/node', nodeArgs: ['-C', 'x'] },
  ...{ launcher: 'packages/launcher/src/main.ts', virtwire: 'packages/virtwire/src/main.ts' },
});
/** Packs as the script does: it leaves the program and what belongs to it beside each other. */
const pack: RunTool = (program, args) => {
  runs.push([program, ...args]);
  const target = dirname(args.at(-1) ?? '');
  writeFileSync(join(target, 'virt-launcher'), String(runs.length));
  writeFileSync(join(target, 'virt-launcher.mjs'), '');
  return Promise.resolve('');
};
const touch = (path: string, inFutureMs: number): void => {
  const at = new Date(Date.now() + inFutureMs);
  utimesSync(join(root, path), at, at);
};

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'virtwire-bundle-'));
  runs = [];
  file('packages/launcher/package.json', JSON.stringify({ dependencies: { '@virtwire/host': '1', pino: '1' } }));
  for (const path of ['launcher/src/main.ts', 'host/src/a/b.ts', 'handler/src/main.ts']) file(`packages/${path}`);
  file('packages/launcher/scripts/bundle.ts');
});
afterEach(() => rmSync(root, { recursive: true }));

test('a checkout packs its launcher once and starts it with the node that it brings', async () => {
  const program = await launcherProgram(pack, installation());
  await launcherProgram(pack, installation());
  expect(program).toEqual({
    command: ['/usr/lib/virtwire/.cache/launcher/virt-launcher'],
    binDir: '/usr/lib/virtwire/node_modules/.bin',
  });
  expect(runs).toHaveLength(1);
});

test.each([
  ['the launcher', 'packages/launcher/src/main.ts', '2'],
  ['a package that it uses', 'packages/host/src/a/b.ts', '2'],
  ['what packs it', 'packages/launcher/scripts/bundle.ts', '2'],
  ['another package', 'packages/handler/src/main.ts', '1'],
])('after a change of %s the program is of the right age', async (_title, path, expected) => {
  await launcherProgram(pack, installation());
  touch(path, 5_000);
  await launcherProgram(pack, installation());
  expect(readFileSync(join(root, '.cache/launcher/virt-launcher'), 'utf8')).toBe(expected);
});

test('a checkout with a C compiler starts its launcher through the monitor, which it builds once', async () => {
  file('deploy/native/build.sh');
  const compile: RunTool = (program, args, options) => {
    if (program !== 'sh') return pack(program, args, options);
    runs.push([program, ...args]);
    file('.cache/native/virt-launcher-monitor');
    touch('.cache/native/virt-launcher-monitor', 5_000);
    return Promise.resolve('');
  };
  const program = await launcherProgram(compile, installation());
  await launcherProgram(compile, installation());
  expect(program).toEqual({
    command: ['/usr/lib/virtwire/.cache/native/virt-launcher-monitor'],
    script: '#!/bin/sh\nexec /usr/lib/virtwire/.cache/launcher/virt-launcher "$@"\n',
    binDir: '/usr/lib/virtwire/node_modules/.bin',
  });
  expect(runs.filter(([name]) => name === 'sh')).toEqual([
    ['sh', join(root, 'deploy/native/build.sh'), join(root, '.cache/native')],
  ]);
});

test('a checkout without a C compiler starts its launcher itself', async () => {
  file('deploy/native/build.sh');
  const fail: RunTool = (program, args, options) =>
    program === 'sh' ? Promise.reject(new Error('no cc')) : pack(program, args, options);
  expect(await launcherProgram(fail, installation())).toEqual({
    command: ['/usr/lib/virtwire/.cache/launcher/virt-launcher'],
    binDir: '/usr/lib/virtwire/node_modules/.bin',
  });
});

test('an installation starts the program that it was published with', async () => {
  rmSync(join(root, 'packages/launcher/scripts'), { recursive: true });
  const { command } = await launcherProgram(pack, installation());
  expect(command).toEqual([
    ...['/usr/lib/virtwire/node_modules/.bin/node', '-C', 'x'],
    '/usr/lib/virtwire/packages/launcher/src/main.ts',
  ]);
  expect(runs).toEqual([]);
});
