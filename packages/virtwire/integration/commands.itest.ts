import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { findLeftovers, findSandbox, openNodeFiles, runTool, takeSnapshot } from '../src/index.ts';
import type { NodeFiles, Snapshot } from '../src/index.ts';
import { ensureGuest, missingForVms, ROOT, Scratch, until } from './support/machine.ts';
import { isAlive, processesWith, qemuOf } from './support/processes.ts';
import { untilAgent, untilRunning, writeGuest } from './support/vm.ts';

const missing = missingForVms();
const BIN = join(ROOT, 'packages', 'virtwire', 'bin', 'virtwire');
const END_MS = 60_000;

interface Result {
  readonly code: number;
  readonly text: string;
}

/** A `virtwire` process and what it said. */
class Cli {
  readonly child: ChildProcess;
  readonly exited: Promise<Result>;
  text = '';

  constructor(...args: string[]) {
    this.child = spawn(BIN, args, { stdio: ['pipe', 'pipe', 'pipe'] });
    for (const stream of [this.child.stdout, this.child.stderr]) {
      stream?.on('data', (chunk: Buffer) => (this.text += chunk.toString()));
    }
    this.exited = new Promise((resolve) => {
      this.child.once('exit', (code) => resolve({ code: code ?? -1, text: this.text }));
    });
  }

  says(words: string | RegExp, timeoutMs = END_MS): Promise<unknown> {
    const isSaid = (): boolean => (typeof words === 'string' ? this.text.includes(words) : words.test(this.text));
    return until(`"${String(words)}" in\n${this.text}`, timeoutMs, isSaid);
  }
}

const virtwire = (...args: string[]): Promise<Result> => new Cli(...args).exited;

describe.skipIf(missing !== undefined)(`the command line${missing === undefined ? '' : `: ${missing}`}`, () => {
  let scratch: Scratch;
  let before: Snapshot = [];
  const started: Cli[] = [];

  beforeAll(async () => {
    ensureGuest();
    scratch = new Scratch();
    before = await takeSnapshot(runTool);
  });
  afterEach(async () => {
    for (const cli of started.splice(0)) {
      if (cli.child.exitCode === null) cli.child.kill('SIGKILL');
      await cli.exited;
    }
  });
  afterAll(() => scratch[Symbol.dispose]());

  const start = (...args: string[]): Cli => {
    const cli = new Cli(...args, '--state-dir', scratch.layout.stateDir);
    started.push(cli);
    return cli;
  };
  const files = (): NodeFiles | undefined => openNodeFiles(scratch.layout);
  const opened = (): Promise<NodeFiles> => until('the state directory', END_MS, files);
  const left = async (...marks: string[]): Promise<string[]> => {
    const { runDir, podsMount, bridge, cgroupParent } = scratch.layout;
    return findLeftovers(before, await takeSnapshot(runTool), [runDir, podsMount, bridge, cgroupParent, ...marks]);
  };

  test('run boots a VM, shows each step, and Ctrl-C leaves nothing behind', async () => {
    const file = writeGuest(scratch.dir, { name: 'run', network: 'masquerade' });
    const run = start('run', file);
    const node = await opened();
    await untilAgent(node, 'default/run');
    const { podUid } = findSandbox(scratch.layout, 'default/run');
    const listed = await virtwire('ps', '--json', '--state-dir', scratch.layout.stateDir);
    expect(JSON.parse(listed.text)).toMatchObject([{ name: 'run', phase: 'Running', agentConnected: true }]);
    run.child.kill('SIGINT');
    const { code, text } = await run.exited;
    for (const step of [
      'sandbox: running',
      'handed over',
      'VM is Running',
      'guest agent connected',
      'VM is Succeeded',
    ]) {
      expect(text).toMatch(new RegExp(`^\\+\\d+\\.\\d{3} s  .*${step}`, 'm'));
    }
    expect(code).toBe(0);
    expect(await left(podUid)).toEqual([]);
  });

  test('pause, unpause, describe, timeline and console do their work on a running VM', async () => {
    const file = writeGuest(scratch.dir, { name: 'work' });
    const run = start('run', file);
    const node = await opened();
    await untilAgent(node, 'default/work');
    const dir = ['--state-dir', scratch.layout.stateDir];
    expect(await virtwire('pause', 'work', ...dir)).toMatchObject({ code: 0, text: 'default/work paused\n' });
    expect((await virtwire('ps', ...dir)).text).toContain('Running (paused)');
    expect(await virtwire('unpause', 'work', ...dir)).toMatchObject({ code: 0, text: 'default/work goes on\n' });
    expect((await virtwire('describe', 'work', ...dir)).text).toMatch(/AgentConnected +True/);
    expect((await virtwire('timeline', 'work', ...dir)).text).toMatch(/handler +\| .*VMI Running/);
    const console = start('console', 'work');
    console.child.stdin?.write('echo $((6 * 7))\n');
    await console.says(/^42/m, 20_000);
    console.child.stdin?.end();
    const stopped = await virtwire('stop', 'work', ...dir);
    expect(stopped).toMatchObject({ code: 0 });
    expect((await run.exited).code).toBe(0);
  });

  test('a run that is killed leaves a VM that the next start of anything removes', async () => {
    const file = writeGuest(scratch.dir, { name: 'orphan', network: 'masquerade' });
    const run = start('run', file);
    await untilRunning(await opened(), 'default/orphan');
    const { pid, podUid } = findSandbox(scratch.layout, 'default/orphan');
    process.kill(processesWith('packages/virtwire/src/main.ts').find((p) => isRunOf(p, file)) ?? 0, 'SIGKILL');
    await run.exited;
    expect(isAlive(pid)).toBe(true);
    const next = start('run', writeGuest(scratch.dir, { name: 'next', kernelArgs: 'virtwire.poweroff=0' }));
    expect((await next.exited).code).toBe(0);
    expect(isAlive(pid)).toBe(false);
    expect(await left(podUid)).toEqual([]);
  });

  test('stop removes what a killed run has left', async () => {
    const file = writeGuest(scratch.dir, { name: 'left' });
    const run = start('run', file);
    await untilRunning(await opened(), 'default/left');
    const { pid, podUid } = findSandbox(scratch.layout, 'default/left');
    process.kill(processesWith('packages/virtwire/src/main.ts').find((p) => isRunOf(p, file)) ?? 0, 'SIGKILL');
    await run.exited;
    const stopped = await virtwire('stop', 'left', '--state-dir', scratch.layout.stateDir);
    expect(stopped).toMatchObject({ code: 0 });
    expect(isAlive(pid)).toBe(false);
    expect(await left(podUid)).toEqual([]);
  });

  test('node keeps a directory of VMs: wrong manifests are told in a line, the others run, over restarts too', async () => {
    const dir = join(scratch.dir, 'manifests');
    mkdirSync(dir);
    writeGuest(dir, { name: 'good' });
    writeFileSync(join(dir, 'bad-yaml.yaml'), 'a: [1,\nb: }');
    writeFileSync(join(dir, 'twice.yaml'), '');
    const node = start('node', '--manifests', dir);
    await node.says('bad-yaml.yaml:2:1: bad YAML');
    const store = await opened();
    await untilRunning(store, 'default/good');
    const first = findSandbox(scratch.layout, 'default/good');
    const qemu = qemuOf(first.pid);
    node.child.kill('SIGTERM');
    expect((await node.exited).code).toBe(0);
    expect(isAlive(first.pid)).toBe(true);

    const again = start('node', '--manifests', dir);
    await again.says('1 VMs taken up again');
    writeGuest(dir, { name: 'later' });
    await untilRunning(store, 'default/later');
    expect(findSandbox(scratch.layout, 'default/good').pid).toBe(first.pid);
    expect(qemuOf(first.pid)).toBe(qemu);
    for (const name of ['good', 'later']) rmSync(join(dir, `${name}.yaml`));
    rmSync(join(dir, 'bad-yaml.yaml'));
    rmSync(join(dir, 'twice.yaml'));
    await until('the end of both VMs', END_MS, () => store.store.list().length === 0);
    again.child.kill('SIGTERM');
    await again.exited;
    expect(await left(first.podUid)).toEqual([]);
  });
});

function isRunOf(pid: number, file: string): boolean {
  return processesWith(file).includes(pid);
}
