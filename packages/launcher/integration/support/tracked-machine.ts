import { execFileSync } from 'node:child_process';
import { chownSync, existsSync, mkdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { unwrap } from '@virtwire/shared-proto';
import type { CmdClient } from '@virtwire/shared-proto';
import type { BackupMetadata, Vmi } from '@virtwire/vm-model';
import { createVmi, provideKernel, requestOf } from './guest.ts';
import type { LauncherPod } from './sandbox.ts';
import { eventually, startLauncherPod } from './sandbox.ts';

const UID = '7a1b2c3d-0000-4000-8000-000000000021';
const FLAGS = ['--name', 'vm1', '--namespace', 'default', '--uid', UID];
const QEMU_UID = 107;
/** Where backups go. */
const BACKUPS = '/var/run/kubevirt/backups';
const PATIENT = { timeoutMs: 60_000 };

function trackedVmi(state: 'Initializing' | 'Enabled', withGuest: boolean): Vmi {
  const bare = createVmi({ name: 'vm1', uid: UID, withGuest });
  const { domain } = bare.spec;
  const disks = [{ name: 'data', disk: { bus: 'virtio' as const } }];
  return {
    ...bare,
    spec: {
      ...bare.spec,
      domain: { ...domain, devices: { ...domain.devices, disks } },
      volumes: [{ name: 'data', persistentVolumeClaim: { claimName: 'data' } }],
    },
    status: { ...bare.status, changedBlockTracking: { state } },
  };
}

/** The VMI of these machines as requests carry it. */
export const { vmi: TRACKED_VMI } = requestOf(trackedVmi('Enabled', true));

/** The guest's disk, which outlives its VM. */
export const imageOf = (pod: LauncherPod): string => join(pod.root, 'kubevirt-private/vmi-disks/data/disk.img');
/** What tracks the changes of the disk; it outlives its VM too. */
export const overlayOf = (pod: LauncherPod): string => join(pod.root, 'kubevirt-private/libvirt/qemu/cbt/data.qcow2');

/** Where QEMU shows a pull backup. */
export const nbdSocketOf = (pod: LauncherPod): string => join(pod.shareDir, 'sockets/backup-nbd-sock');

/** Makes a directory of the launcher's user. */
function provideDirectory(path: string): void {
  if (existsSync(path)) return;
  provideDirectory(dirname(path));
  mkdirSync(path);
  chownSync(path, QEMU_UID, QEMU_UID);
}

/** Makes a file of the launcher's user. */
export function provideFile(path: string, make: () => void): void {
  provideDirectory(dirname(path));
  make();
  chownSync(path, QEMU_UID, QEMU_UID);
}

/** Runs qemu-img. */
export function qemuImg(...args: readonly string[]): void {
  execFileSync('/usr/bin/qemu-img', args, { stdio: ['ignore', 'ignore', 'pipe'] });
}

/** How a machine differs from the plain one. */
export interface TrackedMachineOptions {
  /** More flags of the launcher. */
  readonly flags?: readonly string[];
  /** False: nothing boots. */
  readonly withGuest?: boolean;
}

/** A running guest whose disk is tracked, in a pod of its own. */
export class TrackedMachine implements AsyncDisposable {
  readonly pod: LauncherPod;
  readonly client: CmdClient;

  private constructor(pod: LauncherPod, client: CmdClient) {
    this.pod = pod;
    this.client = client;
  }

  /** Starts a VM on the disk that `provide` puts there, and waits for its guest. */
  static async start(
    provide: (pod: LauncherPod) => void,
    state: 'Initializing' | 'Enabled',
    { flags = [], withGuest = true }: TrackedMachineOptions = {},
  ): Promise<TrackedMachine> {
    const pod = await startLauncherPod([...FLAGS, ...flags]);
    try {
      provideKernel(pod);
      provide(pod);
      provideDirectory(join(pod.shareDir, 'backups'));
      await pod.ear.open();
      await pod.waitUntilReady();
      const machine = new TrackedMachine(pod, await pod.connect());
      unwrap(await machine.client.syncVirtualMachine(requestOf(trackedVmi(state, withGuest)), PATIENT));
      if (withGuest) await pod.waitForLog('GuestAgentLifecycle event state 1 with reason 2 received');
      await pod.ear.hear('Running', (e) => e.domain.Status.Status === 'Running');
      return machine;
    } catch (caught) {
      await pod[Symbol.asyncDispose]();
      throw caught;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.client.close();
    await this.pod[Symbol.asyncDispose]();
  }

  /** Writes noise into the guest's disk. */
  async scribble(mib: number, seekMib: number): Promise<void> {
    const command = `dd if=/dev/urandom of=/dev/vda bs=1M count=${mib} seek=${seekMib} conv=notrunc,fsync`;
    const ask = { domainName: 'default_vm1', Command: '/bin/sh', Args: ['-c', command], timeoutSeconds: 30 };
    const { exitCode } = unwrap(await this.client.exec(ask, PATIENT));
    if (exitCode !== 0) throw new Error(`${command} exits with ${exitCode}`);
  }

  /** Sends a request about backups. */
  request(options: Readonly<Record<string, unknown>>): ReturnType<CmdClient['backupVirtualMachine']> {
    return this.client.backupVirtualMachine(
      { vmi: TRACKED_VMI, options: Buffer.from(JSON.stringify(options)) },
      PATIENT,
    );
  }

  /** What the handler is told at the end of a backup. */
  ended(name: string): Promise<BackupMetadata> {
    const metadata = () => this.pod.ear.domains.map(({ domain }) => domain.Spec.Metadata.KubeVirt.Backup);
    return eventually(`the end of ${name}`, () => metadata().find((b) => b?.Name === name && b.Completed === true));
  }

  /** The image that a push backup left. */
  pushed(name: string, checkpoint: string): string {
    return join(this.pod.shareDir, 'backups/vm1', checkpoint, `${name}-data.qcow2`);
  }

  /** What an image holds, whatever its format, as raw bytes. */
  bytesOf(image: string): Buffer {
    const raw = join(this.pod.root, 'restored.img');
    qemuImg('convert', '-O', 'raw', image, raw);
    return readFileSync(raw);
  }
}

/** Request for a push backup of the test's own minute. */
export const backupStart = (name: string, second: number) => ({
  ...{ cmd: 'Start', mode: 'Push', backupName: name, targetPath: BACKUPS },
  backupStartTime: `2026-01-01T00:00:${String(second).padStart(2, '0')}Z`,
});
/** Checkpoint that such a backup makes. */
export const checkpointOf = (name: string, second: number): string =>
  `${name}-2026-01-01_00-00-${String(second).padStart(2, '0')}`;
