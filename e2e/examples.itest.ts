import { type ChildProcess, spawn } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { startFakeDaemon } from '@virtwire/libvirt/fake';
import { serveCmd } from '@virtwire/shared-proto';
import { parseDomainXml } from '@virtwire/vm-model';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import { installPacked, type PackedProject } from './packed-project.ts';

const EXAMPLES = join(import.meta.dirname, '../examples');
const EXAMPLE_PROGRAMS = ['list-domains.ts', 'call-launcher.ts', 'convert-vmi.ts', 'release-schema.ts'];
const DOMAIN_XML =
  '<domain type="qemu"><name>default_vm1</name><memory unit="KiB">65536</memory><os><type arch="x86_64" machine="q35">hvm</type></os></domain>';

let project: PackedProject | undefined;
let directory: string;
let sockets: string;
beforeAll(async () => {
  sockets = mkdtempSync(join(tmpdir(), 'virtwire-examples-'));
  project = await installPacked([
    '@virtwire/libvirt',
    '@virtwire/shared-proto',
    '@virtwire/vm-model',
    '@virtwire/launcher',
  ]);
  ({ directory } = project);
  for (const file of [...EXAMPLE_PROGRAMS, 'vmi.json']) {
    cpSync(join(EXAMPLES, file), join(directory, file));
  }
}, 240_000);
afterAll(() => {
  project?.[Symbol.dispose]();
  rmSync(sockets, { recursive: true, force: true });
});

interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

interface Running {
  readonly child: ChildProcess;
  readonly ended: Promise<Ended>;
  /** Resolves when the program has printed a text. */
  printed(text: string): Promise<unknown>;
}

/** Runs an example as a stranger would: in the project, with nothing but Node. */
function start(...args: readonly string[]): Running {
  const child = spawn(process.execPath, [...args], { cwd: directory, stdio: ['ignore', 'pipe', 'pipe'] });
  let stdout = '';
  let stderr = '';
  const printed = Promise.withResolvers<undefined>();
  let awaited: string | undefined;
  child.stdout.on('data', (chunk: Buffer) => {
    stdout += chunk.toString();
    if (awaited !== undefined && stdout.includes(awaited)) printed.resolve(undefined);
  });
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
  const ended = new Promise<Ended>((resolve) => child.once('close', (code) => resolve({ code, stdout, stderr })));
  void ended.then(({ stderr: text }) => printed.reject(new Error(`the program ended: ${text}`)));
  printed.promise.catch(() => undefined);
  return {
    child,
    ended,
    printed: (text) => {
      awaited = text;
      if (stdout.includes(text)) printed.resolve(undefined);
      return printed.promise;
    },
  };
}

describe('the packed packages', () => {
  test.each(['libvirt', 'shared-proto', 'vm-model', 'launcher', 'host', 'telemetry'])(
    '%s has code and types, and no tests',
    (name) => {
      const packed = join(directory, 'node_modules/@virtwire', name);
      const manifest = JSON.parse(readFileSync(join(packed, 'package.json'), 'utf8')) as {
        exports: { '.': Record<string, string> };
      };
      for (const path of [manifest.exports['.']['types'], manifest.exports['.']['default']]) {
        expect(existsSync(join(packed, path ?? 'missing'))).toBe(true);
      }
      expect(existsSync(join(packed, 'src'))).toBe(false);
    },
  );

  test('their types fit the examples', async () => {
    const tsc = join(import.meta.dirname, '../node_modules/typescript/bin/tsc');
    const options = ['--noEmit', '--strict', '--module', 'nodenext', '--target', 'es2024', '--types', 'node'];
    const lib = ['--lib', 'es2024,esnext.disposable', '--skipLibCheck', 'false'];
    const { code, stdout } = await start(tsc, ...options, ...lib, ...EXAMPLE_PROGRAMS).ended;
    expect(stdout).toBe('');
    expect(code).toBe(0);
  });
});

describe('list-domains', () => {
  test('lists the domains of a daemon and prints what happens to them', async () => {
    const socketPath = join(sockets, 'libvirt-sock');
    await using daemon = await startFakeDaemon({ socketPath });
    const domain = daemon.hypervisor.define(DOMAIN_XML);
    const program = start('list-domains.ts', socketPath, '1');
    await program.printed('listening');
    daemon.hypervisor.undefine(domain);
    const { code, stdout } = await program.ended;
    expect(stdout).toMatch(/^domain default_vm1 [0-9a-f-]{36} state 5\/0$/m);
    expect(stdout).toMatch(/^event default_vm1 1\/0$/m);
    expect(code).toBe(0);
  });
});

describe('call-launcher', () => {
  test('prints what a launcher answers', async () => {
    const socketPath = join(sockets, 'launcher-sock');
    await using _server = await serveCmd(socketPath, {
      getQemuVersion: async () => ({ version: 'QEMU 10.0.13' }),
      getDomain: async () => ({ domain: '{"ObjectMeta":{"name":"vm1"}}' }),
    });
    const { code, stdout } = await start('call-launcher.ts', socketPath).ended;
    expect(stdout).toBe('qemu QEMU 10.0.13\ndomain {"ObjectMeta":{"name":"vm1"}}\n');
    expect(code).toBe(0);
  });

  test('says that a launcher is older than an RPC, and goes on', async () => {
    const socketPath = join(sockets, 'old-launcher-sock');
    await using _server = await serveCmd(socketPath, { getDomain: async () => undefined });
    const { stdout } = await start('call-launcher.ts', socketPath).ended;
    expect(stdout).toBe('qemu Unimplemented\ndomain none\n');
  });

  test('ends with 1 and one line when there is no launcher', async () => {
    const { code, stderr } = await start('call-launcher.ts', join(sockets, 'nobody')).ended;
    expect(code).toBe(1);
    expect(stderr).toBe(`DialFailed: could not connect to ${join(sockets, 'nobody')}: connect ENOENT\n`);
  });
});

describe('convert-vmi', () => {
  test('prints a domain that libvirt can read', async () => {
    const { code, stdout, stderr } = await start('convert-vmi.ts', 'vmi.json').ended;
    expect(stderr).toBe('');
    expect(code).toBe(0);
    const spec = parseDomainXml(stdout);
    expect(spec.Name).toBe('default_example');
    expect(spec.Devices.Disks?.map((disk) => disk.Source?.File)).toEqual(['/var/run/libvirt/empty-disks/root.qcow2']);
    expect(spec.Devices.Interfaces).toHaveLength(1);
  });

  test('ends with 2 when it is used wrongly', async () => {
    expect((await start('convert-vmi.ts').ended).code).toBe(2);
  });
});

describe('release-schema', () => {
  test('says what launchers of a release lack, and writes their descriptors', async () => {
    const file = join(sockets, 'set.binpb');
    const { code, stdout, stderr } = await start('release-schema.ts', 'v1.7', file).ended;
    expect(stderr).toBe('');
    expect(code).toBe(0);
    expect(stdout).toMatch(
      /^v1\.7\.4\n {2}no BackupVirtualMachine: .*\n {2}no RedefineCheckpoint: .*\n {2}no GetVMStats: /,
    );
    expect(stdout).toContain('migration options: {"Bandwidth":"64Mi","ProgressTimeout":0,');
    expect(readFileSync(file).includes('kubevirt.cmd.v1')).toBe(true);
  });

  test('ends with 2 for what is no release', async () => {
    expect((await start('release-schema.ts', 'v7').ended).code).toBe(2);
  });
});
