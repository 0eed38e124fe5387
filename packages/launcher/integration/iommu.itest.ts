import { spawn } from 'node:child_process';
import * as fs from 'node:fs';
import { once } from 'node:events';
import { join } from 'node:path';
import { unwrap } from '@virtwire/shared-proto';
import { expect, test } from 'vitest';
import { createVmi, requestOf } from './support/guest.ts';
import { eventually, startLauncherPod } from './support/sandbox.ts';

const UID = '7a1b2c3d-0000-4000-8000-000000000031';
const FLAGS = ['--name', 'vm1', '--namespace', 'default', '--uid', UID];
const PATIENT = { timeoutMs: 60_000 };
const vmi = createVmi({ name: 'vm1', uid: UID });

/** The node's device plugin, in another language: gives what stands for /dev/iommu, and one more, once. */
const PLUGIN = `import os, socket, sys
l = socket.socket(socket.AF_UNIX); l.bind(sys.argv[1]); l.listen(); os.chmod(sys.argv[1], 0o666)
print('ready', flush=True)
c, _ = l.accept()
socket.send_fds(c, [b'\\0'], [os.open(p, os.O_RDWR) for p in sys.argv[2:]])
answer = c.recv(2)
l.close()
sys.exit(0 if answer == b'\\0' else 1)`;

/** How often a process has a file open. */
function opened(pid: number | undefined, file: string): number {
  return fs.readdirSync(`/proc/${pid ?? 0}/fd`).filter((fd) => {
    try {
      return fs.readlinkSync(`/proc/${pid ?? 0}/fd/${fd}`) === file;
    } catch {
      return false;
    }
  }).length;
}

test(
  'libvirt has the descriptor that the node passed into the pod before QEMU starts',
  { timeout: 180_000 },
  async () => {
    await using pod = await startLauncherPod(FLAGS);
    const root = fs.realpathSync(pod.root);
    const [device, other] = [join(root, 'iommu'), join(root, 'other')] as const;
    // Neither the launcher nor libvirt could open them.
    for (const path of [device, other]) fs.writeFileSync(path, '', { mode: 0o600 });
    await pod.ear.open();
    await pod.waitUntilReady();
    const socketPath = join(pod.shareDir, 'iommufd.sock');
    const plugin = spawn('python3', ['-c', PLUGIN, socketPath, device, other], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const ended = once(plugin, 'close');
    try {
      await once(plugin.stdout, 'data');
      using client = await pod.connect();
      unwrap(await client.syncVirtualMachine(requestOf(vmi), PATIENT));
      expect((await ended)[0]).toBe(0);
      expect(await eventually('QEMU', () => pod.qemuPid())).toBeGreaterThan(0);
      expect([opened(pod.launcherPid(), device), opened(pod.launcherPid(), other)]).toEqual([1, 0]);
      expect([opened(pod.daemonPid(), device), opened(pod.daemonPid(), other)]).toEqual([1, 0]);
      for (let i = 0; i < 5; i++) unwrap(await client.syncVirtualMachine(requestOf(vmi), PATIENT));
      expect(opened(pod.launcherPid(), device)).toBe(1);
      expect(opened(pod.daemonPid(), device)).toBe(1);
    } finally {
      plugin.kill('SIGKILL');
    }
  },
);

test(
  'a plugin that is gone fails the sync in the words of KubeVirt, and its socket is tried again',
  { timeout: 180_000 },
  async () => {
    await using pod = await startLauncherPod(FLAGS);
    await pod.ear.open();
    await pod.waitUntilReady();
    const socketPath = join(pod.shareDir, 'iommufd.sock');
    fs.writeFileSync(socketPath, '', { mode: 0o666 });
    fs.chmodSync(socketPath, 0o666);
    using client = await pod.connect();
    for (let i = 0; i < 2; i++) {
      const refused = await client.syncVirtualMachine(requestOf(vmi), PATIENT);
      expect(refused.ok ? '' : refused.error.message).toBe(
        'server error. command SyncVMI failed: "IOMMUFD socket exists but failed to receive FD: ' +
          'failed to connect to IOMMUFD socket /var/run/kubevirt/iommufd.sock: ' +
          'dial unix /var/run/kubevirt/iommufd.sock: connect: connection refused"',
      );
    }
    fs.unlinkSync(socketPath);
    unwrap(await client.syncVirtualMachine(requestOf(vmi), PATIENT));
  },
);
