import { execFile, execFileSync } from 'node:child_process';
import { EventEmitter } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { Readable } from 'node:stream';
import { brotliDecompressSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { stringify } from 'yaml';
import type { Output } from './output.ts';
import { runCli } from './program.ts';

const TESTDATA = join(import.meta.dirname, '../../../../testdata/converter.ndjson.br');
const PROGRAM = join(import.meta.dirname, '../../bin/virtwire');

interface Entry {
  readonly path: string;
  readonly json?: unknown;
  readonly text?: string;
}

const entries = brotliDecompressSync(readFileSync(TESTDATA))
  .toString('utf8')
  .trimEnd()
  .split('\n')
  .map((line) => JSON.parse(line) as Entry);
const contents = new Map(entries.map(({ path, json, text }) => [path, text ?? JSON.stringify(json)]));
const names = [...new Set(entries.map(({ path }) => path).filter((path) => path.includes('/')))]
  .map((path) => path.slice(0, path.indexOf('/')))
  .filter((name, index, all) => all.indexOf(name) === index);

let dir = '';
beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), 'virtwire-convert-'));
  for (const [path, text] of contents) {
    mkdirSync(dirname(join(dir, path)), { recursive: true });
    writeFileSync(join(dir, path), text);
  }
});
afterAll(() => rmSync(dir, { recursive: true }));

interface Result {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

async function virtwireWith(standardInput: string, ...argv: string[]): Promise<Result> {
  let [out, err] = ['', ''];
  const output: Output = {
    line: (text) => void (out += `${text}\n`),
    error: (text) => void (err += `${text}\n`),
    document: (text, to) => {
      if (to === 'output') out += text;
      else err += text;
    },
    raw: () => Promise.resolve(),
  };
  const code = await runCli(['convert', ...argv], {
    output,
    input: process.stdin,
    standardInput: () => Readable.from([Buffer.from(standardInput)]),
    signals: new EventEmitter() as unknown as NodeJS.Process,
  });
  return { code, out, err };
}

const virtwire = (...argv: string[]): Promise<Result> => virtwireWith('', ...argv);
const file = (name: string, part: string): string => join(dir, name, part);

/** What a case must come to: the domain's text and nothing else, or the error's and nothing else. */
function expected(name: string): { [K in keyof Result]: unknown } {
  const error = contents.get(`${name}/error.txt`);
  if (error === undefined) return { code: 0, out: contents.get(`${name}/domain.xml`) ?? '', err: '' };
  // A crash of the Go code is any error here.
  return { code: 1, out: '', err: error.startsWith('panic:') ? expect.any(String) : error };
}

describe('what KubeVirt v1.9.0 made of VMIs, to the byte', () => {
  const handed = names.filter((name) => contents.has(`${name}/vmi.launcher.json`));
  test.each(handed)('%s as the launcher is handed it', async (name) => {
    const circumstances = ['--options', file(name, 'options.json'), '--context', file(name, 'context.json')];
    const result = await virtwire(file(name, 'vmi.launcher.json'), ...circumstances);
    expect(result).toEqual(expected(name));
    if (result.code !== 0) return;
    const asJson = await virtwire(file(name, 'vmi.launcher.json'), ...circumstances, '--out', 'json');
    expect(JSON.stringify(JSON.parse(asJson.out))).toBe(contents.get(`${name}/domain.json`));
    expect(asJson.out).toMatch(/^\{\n {2}"/);
  });

  test.each(names)('%s as a client wrote it, with options of our own node agent', async (name) => {
    expect(await virtwire(file(name, 'vmi.json'), '--defaults', '--context', file(name, 'context.json'))).toEqual(
      expected(name),
    );
  });
});

const MINIMAL = {
  apiVersion: 'kubevirt.io/v1',
  kind: 'VirtualMachineInstance',
  metadata: { name: 'vm' },
  spec: { domain: { memory: { guest: '64Mi' }, devices: {} } },
};

test('a VMI in YAML, from standard input, needs nothing else', async () => {
  const { code, out, err } = await virtwireWith(stringify(MINIMAL), '-', '--defaults');
  expect({ code, err }).toEqual({ code: 0, err: '' });
  expect(out).toContain('<name>default_vm</name>');
  expect(out).toContain('<memory unit="b">67108864</memory>');
  expect(out).toContain('<interface type="ethernet">');
});

test('a VirtualMachine stands for its template', async () => {
  const { apiVersion, metadata, spec } = MINIMAL;
  const vm = { apiVersion, kind: 'VirtualMachine', metadata, spec: { running: true, template: { spec } } };
  const { code, out } = await virtwireWith(stringify(vm), '-', '--defaults');
  expect(code).toBe(0);
  expect(out).toContain('<name>default_vm</name>');
  expect(out).toContain('<memory unit="b">67108864</memory>');
});

test('without a context the node is one of the architecture of the VMI', async () => {
  const arm = { ...MINIMAL, spec: { ...MINIMAL.spec, architecture: 'arm64' } };
  const { out } = await virtwireWith(JSON.stringify(arm), '-', '--defaults');
  expect(out).toContain('<type arch="aarch64" machine="virt">hvm</type>');
});

test('the program itself prints the same, through a pipe, with nothing added', async () => {
  const name = '037-net-masquerade';
  const stdout = execFileSync('sh', [
    '-c',
    'exec "$0" convert - --options "$1/options.json" --context "$1/context.json" <"$1/vmi.launcher.json" | cat',
    PROGRAM,
    join(dir, name),
  ]);
  expect(stdout.toString()).toBe(contents.get(`${name}/domain.xml`));
  const bad = join(dir, '112-err-network-missing');
  const args = ['convert', `${bad}/vmi.launcher.json`, '--context', `${bad}/context.json`];
  const failed = await new Promise((resolve) => {
    execFile(PROGRAM, args, (error, out, err) => resolve({ code: error?.code, out, err }));
  });
  expect(failed).toEqual({ code: 1, out: '', err: 'failed to find network lost' });
}, 60_000);

test.each<[title: string, text: string, what: string]>([
  ['no JSON', '{"metadata":', 'standard input: unexpected end of JSON input'],
  ['no object', '[]', 'standard input: VirtualMachineInstance: must be an object, not a list'],
  ['nothing', '', 'standard input: is empty'],
  ['a text', 'hello', 'standard input: VirtualMachineInstance: must be an object, not text'],
  ['bad YAML', 'a: [1,\nb: }', 'standard input: bad YAML: '],
  ['of another kind', '{"apiVersion":"v1","kind":"Pod"}', 'standard input: apiVersion must be kubevirt.io/v1'],
  ['an alias within itself', 'a: &a [*a]', 'standard input: bad YAML: an alias stands within what it stands for'],
  ['lists without end', `a: ${'['.repeat(20_000)}`, 'standard input: bad YAML: '],
  ['two documents', 'a: 1\n---\nb: 2', 'standard input: holds more than one document'],
  [
    'a wrong type',
    '{"spec":{"domain":{"cpu":{"cores":"x"}}}}',
    'standard input: spec.domain.cpu.cores: must be a whole',
  ],
])('a VMI that is %s is one message and exit code 1', async (_title, text, what) => {
  const { code, out, err } = await virtwireWith(text, '-');
  expect({ code, out }).toEqual({ code: 1, out: '' });
  expect(err).toContain(what);
  expect(err).not.toContain('\n');
});

test.each<[option: string, value: unknown, what: string]>([
  ['--context', { podCPUSet: 5 }, 'podCPUSet: must be a list, not 5'],
  ['--context', { env: { A: 1 } }, 'env.A: must be text, not 1'],
  ['--context', { topology: { numaCells: [{ cpus: [{ id: 'x' }] }] } }, 'topology.numaCells[0].cpus[0].id: must be'],
  ['--context', { kubeVirtConfiguration: { memBalloonStatsPeriod: 'often' } }, 'kubeVirtConfiguration.memBalloonStats'],
  ['--context', [], 'must be an object, not a list'],
  ['--options', null, 'must be an object, not "nothing"'],
  ['--options', { MemBalloonStatsPeriod: 'x' }, 'MemBalloonStatsPeriod: must be a whole number'],
  ['--options', { clusterConfig: { BochsDisplayForEFIGuests: 'yes' } }, 'clusterConfig.BochsDisplayForEFIGuests: must'],
])('%s with %j is refused with file and field', async (option, value, what) => {
  const path = join(dir, 'given.json');
  writeFileSync(path, JSON.stringify(value));
  const { code, out, err } = await virtwireWith(JSON.stringify(MINIMAL), '-', option, path);
  expect({ code, out }).toEqual({ code: 1, out: '' });
  expect(err).toContain(`${path}: ${what}`);
});

test.each<[what: string, argv: string[], code: number, text: string]>([
  ['a file that there is not', ['/nowhere/vmi.json'], 1, '/nowhere/vmi.json: no such file'],
  ['a directory', ['/'], 1, '/: cannot be read: EISDIR'],
  ['a device without end', ['/dev/zero'], 1, '/dev/zero: is larger than 16 MiB'],
  ['a missing context', ['-', '--context', '/nowhere/c.json'], 1, '/nowhere/c.json: no such file'],
  ['another format', ['-', '--out', 'yaml'], 2, 'convert: --out is xml or json, not yaml'],
  ['standard input for two files', ['-', '--options', '-'], 2, 'one file at most can come from standard input'],
  ['no file at all', [], 2, "missing required argument 'vmi'"],
])('%s is refused', async (_what, argv, code, text) => {
  const result = await virtwireWith(JSON.stringify(MINIMAL), ...argv);
  expect(result).toMatchObject({ code, out: '' });
  expect(result.err).toContain(text);
});

test.each([
  ['JSON', JSON.stringify(MINIMAL)],
  ['YAML', stringify(MINIMAL)],
])('a byte order mark before %s is passed over', async (_format, text) => {
  expect((await virtwireWith(`\ufeff${text}`, '-')).out).toBe((await virtwireWith(text, '-')).out);
});

test('integers of YAML keep every digit', async () => {
  const vmi = { ...MINIMAL, status: { topologyHints: { tscFrequency: 1 } } };
  const text = stringify({
    ...vmi,
    spec: { domain: { ...MINIMAL.spec.domain, cpu: { features: [{ name: 'invtsc', policy: 'require' }] } } },
  }).replace('tscFrequency: 1', 'tscFrequency: 9223372036854775807');
  expect((await virtwireWith(text, '-')).out).toContain('<timer name="tsc" frequency="9223372036854775807"></timer>');
});
