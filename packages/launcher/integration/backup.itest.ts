import { execFileSync, spawn } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { unwrap } from '@virtwire/shared-proto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createCertificates, exportOptions } from './support/export-server.ts';
import { hasGuest } from './support/guest.ts';
import type { LauncherPod } from './support/sandbox.ts';
import { eventually } from './support/sandbox.ts';
import {
  backupStart as start,
  checkpointOf,
  imageOf,
  nbdSocketOf,
  overlayOf,
  provideFile,
  qemuImg,
  TRACKED_VMI as vmi,
  TrackedMachine,
} from './support/tracked-machine.ts';

const DISK_BYTES = 64 * 1024 * 1024;
const QEMU_UID = 107;
const PATIENT = { timeoutMs: 60_000 };

/** An extent as the export server of the test writes it down. */
interface Extent {
  readonly offset: number;
  readonly length: number;
  readonly description: string;
}

/** Runs an export server in the pod's network, which has no way out. */
async function startExportServer(pod: LauncherPod, dir: string, volume: string, bitmap: string) {
  const script = join(import.meta.dirname, 'support/export-server.ts');
  const node = [process.execPath, '-C', '@virtwire/source', script, dir, volume, bitmap];
  const child = spawn('/usr/bin/nsenter', [`--net=/proc/${pod.launcherPid()}/ns/net`, ...node], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let said = '';
  child.stdout.on('data', (chunk: Buffer) => (said += chunk.toString('utf8')));
  const port = Number(await eventually('the port of the export server', () => /^(\d+)\n/.exec(said)?.[1]));
  const done = eventually('the end of the export', () => said.endsWith('done\n'));
  return { port, done, [Symbol.dispose]: () => void child.kill('SIGKILL') };
}

describe.runIf(hasGuest)('backups of a running guest (scripts/guest/build.sh)', { timeout: 240_000 }, () => {
  let machine: TrackedMachine;
  const started: { machine?: TrackedMachine } = {};

  beforeAll(async () => {
    const provide = (pod: LauncherPod): void =>
      provideFile(imageOf(pod), () => {
        execFileSync('/usr/bin/truncate', ['-s', String(DISK_BYTES), imageOf(pod)]);
      });
    machine = await TrackedMachine.start(provide, 'Initializing');
    started.machine = machine;
  }, 200_000);

  afterAll(() => started.machine?.[Symbol.asyncDispose]());

  test('the handler is told of the data store behind the overlay, whatever this libvirt says', async () => {
    const { domain } = await machine.pod.ear.hear('Running', (e) => e.domain.Status.Status === 'Running');
    const disk = domain.Spec.Devices.Disks?.find(({ Target }) => Target?.Device === 'vda');
    expect(disk?.Source?.File).toMatch(/\/cbt\/data\.qcow2$/);
    expect(disk?.Source?.DataStore?.Source?.File).toMatch(/\/vmi-disks\/data\/disk\.img$/);
  });

  test('a full backup restores to equal bytes, and the guest stood still when it began', async () => {
    await machine.scribble(4, 3);
    unwrap(await machine.request(start('full', 1)));
    const { Failed = false, BackupMsg = '', QuiesceStatus, CheckpointName, Volumes = '' } = await machine.ended('full');
    expect({ Failed, BackupMsg, QuiesceStatus }).toEqual({ Failed: false, BackupMsg: '', QuiesceStatus: 'Succeeded' });
    expect(CheckpointName).toBe(checkpointOf('full', 1));
    expect(JSON.parse(Volumes)).toEqual([{ volumeName: 'data', diskTarget: 'vda' }]);
    const restored = machine.bytesOf(machine.pushed('full', checkpointOf('full', 1)));
    expect(restored.length).toBe(DISK_BYTES);
    expect(restored.equals(readFileSync(imageOf(machine.pod)))).toBe(true);
    expect(restored.subarray(3 << 20, 7 << 20).every((byte) => byte === 0)).toBe(false);
  });

  test('an incremental backup holds what changed, and the chain restores to equal bytes', async () => {
    await machine.scribble(2, 40);
    unwrap(await machine.request({ ...start('more', 2), incremental: checkpointOf('full', 1), skipQuiesce: true }));
    const { Failed = false, QuiesceStatus } = await machine.ended('more');
    expect({ Failed, QuiesceStatus }).toEqual({ Failed: false, QuiesceStatus: 'Skipped' });
    const image = machine.pushed('more', checkpointOf('more', 2));
    expect(statSync(image).blocks * 512).toBeLessThan(4 << 20);
    qemuImg('rebase', '-u', '-b', machine.pushed('full', checkpointOf('full', 1)), '-F', 'qcow2', image);
    expect(machine.bytesOf(image).equals(readFileSync(imageOf(machine.pod)))).toBe(true);
  });

  test('a pull backup shows the disk as it was at its start, with what changed, until it is ended', async () => {
    const before = readFileSync(imageOf(machine.pod));
    const options = { ...start('pull', 3), mode: 'Pull', incremental: checkpointOf('more', 2) };
    await machine.scribble(1, 50);
    const atStart = readFileSync(imageOf(machine.pod));
    unwrap(await machine.request(options));
    unwrap(await machine.request(options));
    await machine.scribble(3, 50);
    const pulled = join(machine.pod.root, 'pulled.img');
    qemuImg('convert', '-f', 'raw', '-O', 'raw', `nbd+unix:///data?socket=${nbdSocketOf(machine.pod)}`, pulled);
    expect(readFileSync(pulled).equals(atStart)).toBe(true);
    expect(before.equals(atStart)).toBe(false);
    const other = await machine.request(start('other', 4));
    expect(other.ok ? '' : other.error.detail).toBe('backup pull already in progress, need to wait for completion');
    unwrap(await machine.request({ ...options, cmd: 'Abort' }));
    const { Failed = false, BackupMsg = '' } = await machine.ended('pull');
    expect({ Failed, BackupMsg }).toEqual({ Failed: false, BackupMsg: '' });
    expect(existsSync(nbdSocketOf(machine.pod))).toBe(false);
    const late = await machine.request({ ...options, cmd: 'Abort' });
    expect(late.ok ? '' : late.error.detail).toBe('failed to abort backup: backup already completed');
  });

  test('an export server pulls the backup through a tunnel: what changed, and equal bytes', async () => {
    const dir = join(machine.pod.root, 'export');
    mkdirSync(dir);
    createCertificates(dir);
    const since = checkpointOf('pull', 3);
    const options = { ...start('out', 4), mode: 'Pull', incremental: since };
    await machine.scribble(2, 10);
    const atStart = readFileSync(imageOf(machine.pod));
    unwrap(await machine.request(options));
    using server = await startExportServer(machine.pod, dir, 'data', checkpointOf('out', 4));
    unwrap(await machine.request({ ...options, cmd: 'Export', ...exportOptions(dir, server.port) }));
    await server.done;
    expect(readFileSync(join(dir, 'pulled.img')).equals(atStart)).toBe(true);
    const extents = JSON.parse(readFileSync(join(dir, 'extents.json'), 'utf8')) as readonly Extent[];
    const dirty = extents.filter(({ description }) => description.startsWith('dirty'));
    const covers = (mib: number): boolean =>
      dirty.some(({ offset, length }) => offset <= mib << 20 && offset + length >= (mib + 1) << 20);
    expect([10, 11, 50, 51, 52].map(covers)).toEqual([true, true, true, true, true]);
    expect(dirty.reduce((sum, { length }) => sum + length, 0)).toBeLessThan(8 << 20);
    unwrap(await machine.request({ ...options, cmd: 'Abort' }));
    await machine.ended('out');
  });

  test('a backup whose target is full fails with the reason, and the next one may begin', async () => {
    const small = '/var/run/kubevirt/small';
    const inPod = ['-t', String(machine.pod.launcherPid()), '-m'];
    const mount = ['mount', '-t', 'tmpfs', '-o', `size=2m,uid=${QEMU_UID}`, 'tmpfs', small];
    execFileSync('/usr/bin/nsenter', [...inPod, 'mkdir', small]);
    execFileSync('/usr/bin/nsenter', [...inPod, ...mount]);
    unwrap(await machine.request({ ...start('full-target', 7), targetPath: small }));
    const { Failed = false, BackupMsg = '' } = await machine.ended('full-target');
    expect(Failed).toBe(true);
    expect(BackupMsg).toContain('No space left on device');
  });

  test('a backup of which libvirt knows no beginning leaves nothing behind', async () => {
    const answer = await machine.request({ ...start('lost', 5), incremental: 'nothing' });
    expect(answer.ok ? '' : answer.error.detail).toMatch(/^virError\(Code=103, Domain=\d+, Message='.*nothing.*'\)$/);
    expect(readdirSync(join(machine.pod.shareDir, 'backups/vm1'))).not.toContain(checkpointOf('lost', 5));
  });

  test('FM-2.6 a backup outlives a restart of the libvirt daemon, and ends when it is aborted', async () => {
    const options = { ...start('daemon', 6), mode: 'Pull' };
    unwrap(await machine.request(options));
    const daemon = machine.pod.daemonPid() ?? 0;
    process.kill(daemon, 'SIGKILL');
    await machine.pod.waitForLog(/^Libvirt reconnected, domain default_vm1/);
    unwrap(await machine.request({ ...options, cmd: 'Abort' }));
    const { Failed = false, BackupMsg = '' } = await machine.ended('daemon');
    expect({ Failed, BackupMsg }).toEqual({ Failed: false, BackupMsg: '' });
  });

  test('a checkpoint is defined again after the VM was started anew, and the next backup goes on from it; a backup ends with its VM', async () => {
    unwrap(await machine.request(start('base', 10)));
    await machine.ended('base');
    const base = join(machine.pod.root, 'base.qcow2');
    copyFileSync(machine.pushed('base', checkpointOf('base', 10)), base);
    await machine.scribble(1, 20);
    unwrap(await machine.client.killVirtualMachine({ vmi }, PATIENT));
    await machine.pod.ear.hear('Shutoff', ({ domain }) => domain.Status.Status === 'Shutoff');

    const provide = (pod: LauncherPod): void => {
      provideFile(imageOf(pod), () => copyFileSync(imageOf(machine.pod), imageOf(pod)));
      provideFile(overlayOf(pod), () => copyFileSync(overlayOf(machine.pod), overlayOf(pod)));
    };
    await using next = await TrackedMachine.start(provide, 'Enabled');
    await next.scribble(1, 30);
    const redefine = (name: string) => {
      const checkpoint = Buffer.from(JSON.stringify({ name, creationTime: '2026-01-01T00:00:10Z' }));
      return next.client.redefineCheckpoint({ vmi, checkpoint }, PATIENT);
    };
    const unknown = await redefine('none');
    expect(unknown.ok ? '' : unknown.error.detail).toBe('no disks found with checkpoint bitmap none');
    expect(unwrap(await redefine(checkpointOf('base', 10))).checkpointInvalid).toBe(false);
    unwrap(await next.request({ ...start('after', 11), incremental: checkpointOf('base', 10) }));
    await next.ended('after');
    const image = next.pushed('after', checkpointOf('after', 11));
    qemuImg('rebase', '-u', '-b', base, '-F', 'qcow2', image);
    expect(next.bytesOf(image).equals(readFileSync(imageOf(next.pod)))).toBe(true);
    unwrap(await next.request({ ...start('killed', 12), mode: 'Pull' }));
    process.kill(next.pod.qemuPid() ?? 0, 'SIGKILL');
    expect((await next.ended('killed')).EndTimestamp).toBeDefined();
  });
});
