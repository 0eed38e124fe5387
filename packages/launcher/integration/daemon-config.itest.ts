import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { startLauncherPod } from './support/sandbox.ts';

const FLAGS = ['--name', 'vm1', '--namespace', 'default', '--uid', '7a1b2c3d-0000-4000-8000-00000000000f'];

test('a qemu.conf that only root may read, as Debian installs it, is told of and not needed', async () => {
  const etc = mkdtempSync(join(tmpdir(), 'virtwire-etc-'));
  chmodSync(etc, 0o755);
  try {
    mkdirSync(join(etc, 'libvirt'), { mode: 0o755 });
    writeFileSync(join(etc, 'libvirt/qemu.conf'), 'security_driver = "none"\n', { mode: 0o600 });
    await using pod = await startLauncherPod([...FLAGS, '--libvirt-etc-dir', join(etc, 'libvirt')]);
    await pod.waitUntilReady();
    await pod.waitForLog(`${join(etc, 'libvirt')}/qemu.conf cannot be read, its settings are not taken over`);
    const written = readFileSync(join(pod.root, 'kubevirt-private/libvirt/qemu.conf'), 'utf8');
    expect(written).not.toContain('security_driver');
    expect(written).toContain('namespaces = [ ]\n');
  } finally {
    rmSync(etc, { recursive: true });
  }
}, 120_000);
