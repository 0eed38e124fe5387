import { EventEmitter } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Vmi } from '@virtwire/vm-model';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { VmEvent } from '../state/event-files.ts';
import { nodeLayout } from '../state/layout.ts';
import { VmiFiles } from '../state/vmi-files.ts';
import type { ConsoleInput } from './console.ts';
import { doctor } from './doctor-command.ts';
import { renderAge, renderTable } from './output.ts';
import type { Output } from './output.ts';
import { runCli } from './program.ts';
import { createProgress, describeChange } from './progress.ts';
import { exitOfRun } from './run-command.ts';
import { parseTarget } from './target.ts';

let dir = '';
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'virtwire-cli-'));
});
afterEach(() => rmSync(dir, { recursive: true }));

interface Result {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

async function virtwire(...argv: string[]): Promise<Result> {
  const [out, err]: [string[], string[]] = [[], []];
  const output: Output = {
    line: (text) => out.push(text),
    error: (text) => err.push(text),
    document: (text, to) => (to === 'output' ? out : err).push(text),
    raw: () => Promise.resolve(),
  };
  const input = process.stdin as ConsoleInput;
  const signals = new EventEmitter() as unknown as NodeJS.Process;
  const code = await runCli(argv, { output, input, standardInput: () => process.stdin, signals });
  return { code, out: out.join('\n'), err: err.join('\n') };
}

const stored = (name: string): Vmi => ({
  metadata: { name, namespace: 'default', uid: `uid-${name}`, creationTimestamp: '2026-01-02T03:04:05Z' },
  spec: { domain: { devices: {} } },
  status: { phase: 'Running', conditions: [{ type: 'Paused', status: 'True' }] },
});

test.each(['run', 'node', 'ps', 'describe', 'console', 'stop', 'pause', 'unpause', 'timeline', 'doctor', 'convert'])(
  '%s --help shows an example and the exit codes',
  async (command) => {
    const { code, out } = await virtwire(command, '--help');
    expect(code).toBe(0);
    expect(out).toMatch(new RegExp(`Example:\\n  virtwire ${command}`));
    expect(out).toContain('Exit codes:');
  },
);

test.each([
  ['a command that there is not', ['fly'], 2],
  ['a missing name', ['stop'], 2],
  ['a name of three parts', ['describe', 'a/b/c'], 2],
  ['a VM that there is not', ['describe', 'nobody'], 3],
  ['a timeline of a VM that never started', ['timeline', 'nobody'], 3],
])('%s is told in one line, with its exit code', async (_title, argv, expected) => {
  const { code, err } = await virtwire(...argv, ...(argv.length > 1 ? ['--state-dir', dir] : []));
  expect(code).toBe(expected);
  expect(err.trim().split('\n')).toHaveLength(1);
});

test.each([
  ['an empty state directory', ['ps', '--state-dir', ''], 'virtwire: --state-dir is empty: name a directory'],
  ['an empty directory of manifests', ['node', '--manifests', ''], 'virtwire: node: --manifests DIR is missing'],
  ['a command that there is not', ['fly'], "virtwire: unknown command 'fly': see virtwire --help"],
  ['a mistyped command', ['stpo'], "virtwire: unknown command 'stpo' (Did you mean stop?): see virtwire --help"],
  ['a missing name', ['stop'], "virtwire: missing required argument 'name': see virtwire stop --help"],
  [
    'one name too many',
    ['stop', 'a', 'b'],
    "virtwire: too many arguments for 'stop'. Expected 1 argument but got 2: a, b: see virtwire stop --help",
  ],
  [
    'a state directory that is a file',
    ['ps', '--state-dir', '/dev/null'],
    'virtwire: --state-dir /dev/null: no directory',
  ],
  ['an option that there is not', ['ps', '--fly'], "virtwire: unknown option '--fly': see virtwire ps --help"],
])('%s says what to do', async (_title, argv, text) => {
  expect(await virtwire(...argv)).toEqual({ code: 2, out: '', err: text });
});

test('node with a directory of manifests that there is not fails before a node is started', async () => {
  const stateDir = join(dir, 'state');
  const { code, out, err } = await virtwire('node', '--manifests', join(dir, 'none'), '--state-dir', stateDir);
  expect([code, out, err]).toEqual([2, '', `virtwire: --manifests ${join(dir, 'none')}: no such directory`]);
  expect(existsSync(stateDir)).toBe(false);
});

test('describe --json keeps all digits of integers beyond 2^53', async () => {
  const vmi = { ...stored('web'), future: 9_007_199_254_740_993n };
  await new VmiFiles(nodeLayout(dir).vmisDir).create(vmi);
  expect((await virtwire('describe', 'web', '--json', '--state-dir', dir)).out).toContain(
    '  "future": 9007199254740993',
  );
});

test.each([
  ['the guest ends well', 0, true, 'Succeeded', 0],
  ['the guest fails', 0, true, 'Failed', 1],
  ['it never starts', 0, false, 'Failed', 1],
  ['one Ctrl-C, and the guest shuts down', 1, true, 'Succeeded', 0],
  ['one Ctrl-C before the guest runs', 1, false, 'Succeeded', 130],
  ['one Ctrl-C before there is a phase', 1, false, undefined, 130],
  ['two Ctrl-C', 2, true, 'Failed', 130],
])(
  'run: %s (%i interrupts, has run: %s, %s) exits with %i, as its help says',
  (_title, interrupts, hasRun, phase, code) => {
    expect(exitOfRun({ interrupts, hasRun, phase })).toBe(code);
  },
);

function collectLines(): { readonly lines: string[]; readonly output: Output } {
  const lines: string[] = [];
  const output: Output = {
    line: (text) => lines.push(text),
    error: () => undefined,
    document: () => undefined,
    raw: () => Promise.resolve(),
  };
  return { lines, output };
}

test('doctor without root says so, and does not blame kernel modules', async () => {
  const { lines, output } = collectLines();
  const calls: string[] = [];
  const run = (program: string): Promise<string> => Promise.resolve(void calls.push(program)).then(() => '');
  expect(await doctor({ json: false, output }, { run, isRoot: false })).toBe(4);
  expect(lines.join('\n')).toMatch(/BAD +root +this process is not root: use sudo/);
  expect(lines.join('\n')).toMatch(/NOTE +network +not tried: this process is not root: use sudo/);
  expect(lines.join('\n')).not.toContain('load the kernel module');
  expect(calls).not.toContain('ip');
});

test('doctor tells what only some VMs need, and does not call the machine bad for it', async () => {
  const { lines, output } = collectLines();
  await doctor({ json: true, output }, { run: () => Promise.resolve(''), isRoot: true });
  const findings = JSON.parse(lines.join('')) as { check: string; verdict: string; remedy?: string }[];
  for (const [check, remedy] of [
    ['EFI firmware', /ovmf/],
    ['TPM', /swtpm/],
  ] as const) {
    const found = findings.find((finding) => finding.check === check);
    expect(['ok', 'note']).toContain(found?.verdict);
    if (found?.verdict === 'note') expect(found.remedy).toMatch(remedy);
  }
});

test('doctor does not trip over another doctor: its namespace bears its own number', async () => {
  const output: Output = {
    line: () => undefined,
    error: () => undefined,
    document: () => undefined,
    raw: () => Promise.resolve(),
  };
  const names: string[] = [];
  const run = (_program: string, args: readonly string[]): Promise<string> => {
    if (args[0] === 'netns' && args[1] === 'add') names.push(args[2] ?? '');
    return Promise.resolve('');
  };
  await doctor({ json: true, output }, { run, isRoot: true });
  expect(names).toEqual([`virtwire-doctor-${process.pid}`]);
});

test('run refuses a wrong manifest before anything is made', async () => {
  const file = join(dir, 'vm.yaml');
  writeFileSync(file, 'apiVersion: v1\nkind: Pod\n');
  const { code, err } = await virtwire('run', file, '--state-dir', join(dir, 'state'));
  expect(code).toBe(2);
  expect(err).toBe(`virtwire: ${file}: apiVersion must be kubevirt.io/v1`);
});

test('ps lists VMs as a table and as JSON', async () => {
  await new VmiFiles(nodeLayout(dir).vmisDir).create(stored('web'));
  expect((await virtwire('ps', '--state-dir', dir)).out).toMatch(/default +web +Running \(paused\)/);
  const json = JSON.parse((await virtwire('ps', '--json', '--state-dir', dir)).out) as unknown;
  expect(json).toMatchObject([{ name: 'web', phase: 'Running', paused: true }]);
});

test('a timeline that cannot be written as a page names the file', async () => {
  const layout = nodeLayout(dir);
  mkdirSync(layout.logsDir, { recursive: true });
  const line = { component: 'virt-handler', level: 'info', timestamp: '2026-01-02T03:04:05.000000Z', pos: 'a.ts:1' };
  const msg = 'VMI is in phase: Scheduled | Domain does not exist';
  const object = { kind: '', name: 'web', namespace: 'default', uid: 'uid-web' };
  writeFileSync(layout.handlerLog, `${JSON.stringify({ ...line, msg, ...object })}\n`);
  const html = join(dir, 'none/page.html');
  const { code, err } = await virtwire('timeline', 'web', '--html', html, '--state-dir', dir);
  expect([code, err]).toEqual([1, expect.stringContaining(`virtwire: --html ${html} cannot be written: ENOENT`)]);
});

test('describe takes NAME for default/NAME', async () => {
  await new VmiFiles(nodeLayout(dir).vmisDir).create(stored('web'));
  const { out } = await virtwire('describe', 'web', '--state-dir', dir);
  expect(out).toMatch(/Name: +default\/web/);
  expect(out).toMatch(/Paused +True/);
});

test('a VM without launcher has no console', async () => {
  await new VmiFiles(nodeLayout(dir).vmisDir).create(stored('web'));
  const { code, err } = await virtwire('console', 'web', '--state-dir', dir);
  expect([code, err]).toEqual([1, 'virtwire: VM default/web has no launcher: it is Running']);
});

test('names', () => {
  expect(parseTarget('a')).toBe('default/a');
  expect(parseTarget('ns/a')).toBe('ns/a');
});

test('columns are as wide as they need', () => {
  expect(renderTable(['A', 'B'], [['xxx', 'y']])).toBe('A     B\nxxx   y');
});

test.each([
  [0, '0s'],
  [61_000, '1m1s'],
  [3_700_000, '1h1m'],
  [90_000_000, '1d1h'],
])('%i ms is %s', (ms, text) => {
  expect(renderAge(ms)).toBe(text);
});

test('progress tells what changed, once', () => {
  const before = { ...stored('a'), status: { phase: 'Scheduled' as const } };
  expect(describeChange(undefined, before)).toEqual(['VM is Scheduled']);
  expect(describeChange(before, stored('a'))).toEqual(['VM is Running', 'VM paused']);
  expect(describeChange(stored('a'), stored('a'))).toEqual([]);
});

test('progress tells a warning that comes again and again once, and again after another one', () => {
  const lines: string[] = [];
  const output: Output = {
    line: (text) => lines.push(text.replace(/^.* s {2}/, '')),
    error: () => undefined,
    document: () => undefined,
    raw: () => Promise.resolve(),
  };
  const progress = createProgress(output, () => 0, 0);
  const warning = (message: string): VmEvent => ({
    at: '',
    type: 'Warning',
    reason: 'SyncFailed',
    message,
    uid: 'uid-a',
  });
  progress.see({ ...stored('a'), status: {} });
  progress.warn([warning('one')]);
  progress.warn([warning('one'), warning('one'), warning('two')]);
  progress.warn([warning('one'), warning('one'), warning('two'), warning('one')]);
  expect(lines).toEqual(['SyncFailed: one', 'SyncFailed: two', 'SyncFailed: one']);
});
