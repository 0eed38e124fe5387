import { randomUUID } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { findLeftovers, runTool, takeSnapshot } from '../src/index.ts';
import type { Snapshot } from '../src/index.ts';
import { openJournal } from '../src/journal/journal.ts';
import { NODE_OWNER } from '../src/journal/resource.ts';
import { removeDirectory } from '../src/journal/remove-directory.ts';
import { releaseOwner } from '../src/journal/undo.ts';
import { launcherDevices } from '../src/sandbox/devices.ts';
import { findInstallation, SANDBOX_ROOT } from '../src/sandbox/installation.ts';
import { createSandbox } from '../src/sandbox/sandbox.ts';
import type { Sandbox, SandboxDeps } from '../src/sandbox/sandbox.ts';
import { missingForVms, readLog, ROOT, Scratch, until } from './support/machine.ts';

const missing = missingForVms();

/** Tells what it sees from inside, then stays. */
const PROGRAM = `
const { execFileSync } = require('node:child_process');
const fs = require('node:fs');
const run = (file, ...args) => { try { return execFileSync(file, args).toString().trim(); } catch (e) { return 'error: ' + e.message; } };
const status = fs.readFileSync('/proc/self/status', 'utf8');
const can = (path) => { try { fs.writeFileSync(path, 'x'); return true; } catch { return false; } };
console.log(JSON.stringify({
  id: run('id', '-u'), name: run('id', '-un'), pid: process.pid,
  caps: /CapEff:\\s*(\\w+)/.exec(status)[1], noNewPrivs: /NoNewPrivs:\\s*(\\d)/.exec(status)[1],
  links: fs.readdirSync('/sys/class/net').sort(), route: run('ip', 'route', 'show', 'default'),
  checkout: can('${SANDBOX_ROOT}/x'), shared: can('/var/run/kubevirt/x'), image: can('/var/run/kubevirt-image-volume/disk_0/x'),
  home: fs.readdirSync('/home'), hidesRoot: fs.readFileSync('/proc/mounts', 'utf8').includes('tmpfs /root tmpfs'), hosts: fs.readFileSync('/etc/hosts', 'utf8'), hostname: run('hostname'),
  processes: fs.readdirSync('/proc').filter((n) => /^\\d+$/.test(n)).length,
}));
setInterval(() => undefined, 1000);
process.on('SIGTERM', () => process.exit(0));
`;

interface Seen {
  readonly id: string;
  readonly name: string;
  readonly pid: number;
  readonly caps: string;
  readonly noNewPrivs: string;
  readonly links: string[];
  readonly route: string;
  readonly checkout: boolean;
  readonly shared: boolean;
  readonly image: boolean;
  readonly home: string[];
  readonly hidesRoot: boolean;
  readonly hosts: string;
  readonly hostname: string;
  readonly processes: number;
}

describeIf('a sandbox', () => {
  const scratch = new Scratch();
  const podUid = randomUUID();
  const { layout } = scratch;
  const logFile = join(scratch.dir, 'log');
  const marks = [layout.stateDir, layout.runDir, layout.podsMount, layout.bridge, layout.cgroupParent, podUid];
  let before: Snapshot = [];
  let sandbox: Sandbox;
  let seen: Seen;

  const deps = (): SandboxDeps => ({ run: runTool, journal: openJournal(layout.journalFile), layout });

  beforeAll(async () => {
    before = await takeSnapshot(runTool);
    const image = join(scratch.dir, 'image');
    mkdirSync(image);
    writeFileSync(join(image, 'disk.img'), '');
    const { node, root } = findInstallation();
    sandbox = await createSandbox(deps(), {
      podUid,
      hostname: 'vm1',
      args: [join(SANDBOX_ROOT, node), '-e', PROGRAM],
      binDir: join(SANDBOX_ROOT, 'node_modules', '.bin'),
      env: [],
      binds: [
        { source: root, destination: SANDBOX_ROOT, readonly: true },
        { source: image, destination: '/var/run/kubevirt-image-volume/disk_0', readonly: true },
      ],
      devices: launcherDevices(false),
      user: 107,
      logFile,
    });
    const line = await until('the program', 20_000, () =>
      readLog(logFile)
        .split('\n')
        .find((text) => text.startsWith('{')),
    );
    seen = JSON.parse(line) as Seen;
  });

  afterAll(async () => {
    await releaseOwner(deps().journal, runTool, podUid);
    await releaseOwner(deps().journal, runTool, NODE_OWNER);
    scratch[Symbol.dispose]();
  });

  test('runs its program as PID 1 and user qemu, with one capability and no way to more', () => {
    expect(seen).toMatchObject({ id: '107', name: 'qemu', pid: 1, noNewPrivs: '1' });
    expect(BigInt(`0x${seen.caps}`)).toBe(1n << 10n);
  });

  test('sees its own processes alone, and none of the private files of the host', () => {
    expect(seen.processes).toBeLessThan(6);
    expect([seen.home, seen.hidesRoot]).toEqual([[], true]);
  });

  test('has a pod network: eth0 with address and default route', () => {
    expect(seen.links).toEqual(['eth0', 'lo']);
    expect(seen.route).toMatch(/^default via 10\./);
    expect(seen.hosts).toContain(`${sandbox.podIp} vm1`);
    expect(seen.hostname).toBe('vm1');
  });

  test('can write to its volumes, but neither to the installation nor to images', () => {
    expect([seen.shared, seen.checkout, seen.image]).toEqual([true, false, false]);
  });

  test('shows up on the machine, so that the comparison below means something', async () => {
    const now = findLeftovers(before, await takeSnapshot(runTool), marks);
    for (const kind of ['netns', 'mount', 'cgroup', 'process', 'nft', 'link']) {
      expect(
        now.some((line) => line.startsWith(`${kind} `)),
        `${kind} in\n${now.join('\n')}`,
      ).toBe(true);
    }
  });

  test('a directory is not removed through a mount', () => {
    expect(() => removeDirectory(layout.runDir)).toThrow(/is still mounted there/);
  });

  test('is removed whole by a process that knows nothing but the journal', async () => {
    const { journal } = deps();
    await releaseOwner(journal, runTool, podUid);
    await releaseOwner(journal, runTool, NODE_OWNER);
    const after = await takeSnapshot(runTool);
    expect(findLeftovers(before, after, marks)).toEqual([]);
    expect(journal.entries()).toEqual([]);
  });
});

/** Skips by name where sandboxes cannot be built. */
function describeIf(title: string, body: () => void): void {
  if (missing === undefined) body();
  else test.skip(`${title}: ${missing}`, () => undefined);
}

test('the checkout is found from inside', () => {
  expect(findInstallation().root).toBe(ROOT);
});
