import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startEmulatedLauncher } from '../emulate/launcher/launcher.ts';
import { createNodeDirs } from '../matrix/node-dirs.ts';
import { POD_UID, VM } from '../matrix/test-vmi.ts';
import { runCompat } from './program.ts';

const ROOT = join(import.meta.dirname, '../../../..');
const README = readFileSync(join(import.meta.dirname, '../../README.md'), 'utf8');
const [, upgrade = ''] = /## Check your KubeVirt upgrade\n([^]*?)\n## /.exec(README) ?? [];
const [, commands = ''] = /```sh\n([^]*?)```/.exec(upgrade) ?? [];
const [, suite = ''] = /### In vitest\n[^]*?```ts\n([^]*?)```/.exec(README) ?? [];

let scratch: string;
beforeAll(() => {
  scratch = mkdtempSync(join(tmpdir(), 'virtwire-readme-'));
});
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

/** Runs one command of a document; what it names is replaced by what there is here, and the matrix is kept small. */
async function run(
  command: string,
  here: Readonly<Record<string, string>> = {},
): Promise<{ code: number; out: string }> {
  const [npx, program, ...words] = command.trim().split(/\s+/);
  expect([npx, program]).toEqual(['npx', 'virtwire-compat']);
  const argv = words.map((word) => here[word] ?? (/\.(html|xml|json)$/.test(word) ? join(scratch, word) : word));
  const small = argv[0] === 'matrix' ? ['--scenarios', 'first-start', '--releases', 'v1.6'] : [];
  const out: string[] = [];
  const say = (text: string): void => void out.push(text);
  const io = { line: say, error: say, input: Readable.from([]), signals: process, env: {} };
  return { code: await runCompat([...argv, ...small], io), out: out.join('\n') };
}

test('the three commands of "Check your KubeVirt upgrade" work', async () => {
  using dirs = createNodeDirs();
  const { socketsDir, shareDir } = dirs.pod(POD_UID);
  await using launcher = await startEmulatedLauncher({ line: 'v1.6', vmi: VM, socketsDir, shareDir });
  const [matrix = '', probe = '', replay = '', ...more] = commands.trim().split('\n');
  expect(more).toEqual([]);
  expect(await run(matrix)).toMatchObject({ code: 0 });
  const socket = probe.split(/\s+/).at(-1) ?? '';
  const probed = await run(probe, { [socket]: launcher.cmdSocket });
  expect(probed).toMatchObject({ code: 0 });
  expect(probed.out).toContain('v1.6');
  const recorded = join(ROOT, 'testdata/wire-samples.ndjson.br');
  expect(await run(replay, { 'recorded-traffic': recorded })).toMatchObject({ code: 0 });
});

test('the command of the GitHub workflow works', async () => {
  const workflow = readFileSync(join(ROOT, 'deploy/compat/github-workflow.yaml'), 'utf8');
  const [, command = ''] = /run: sudo env "PATH=\$PATH" (npx virtwire-compat .*)/.exec(workflow) ?? [];
  expect(await run(command)).toMatchObject({ code: 0 });
});

test('the Job and the Containerfile name commands that exist', () => {
  for (const file of ['kubernetes-job.yaml', 'Containerfile']) {
    const text = readFileSync(join(ROOT, 'deploy/compat', file), 'utf8');
    expect(text).toMatch(/virtwire-compat (probe --socket|matrix)|"virtwire-compat"\]\nCMD \["matrix"/);
  }
});

test('the example for vitest defines its tests', async () => {
  const index = pathToFileURL(join(import.meta.dirname, '../index.ts')).href;
  const defined: string[] = [];
  const program = suite
    .replace("'@virtwire/compat'", `'${index}'`)
    .replace(/import .* from 'vitest';/, 'const { describe, test } = globalThis.runner;');
  const runner = {
    describe: (_name: string, define: () => void) => define(),
    test: (name: string) => void defined.push(name),
  };
  Object.assign(globalThis, { runner });
  const file = join(scratch, 'suite.mjs');
  writeFileSync(file, program);
  await import(pathToFileURL(file).href);
  expect(defined).toEqual(['first start']);
});
