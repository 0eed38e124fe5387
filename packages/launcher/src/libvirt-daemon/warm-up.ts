import { startSpan } from '@virtwire/telemetry';
import type { Logger } from '@virtwire/telemetry';
import type { LibvirtPort } from '../domain/libvirt-port.ts';

/** Machine type that nearly every VM has; which one is asked for hardly matters, the probe covers the whole binary. */
const MACHINE: Readonly<Record<string, string>> = { x86_64: 'q35', aarch64: 'virt', s390x: 's390-ccw-virtio' };
const ARCH: Readonly<Record<string, string>> = { x64: 'x86_64', arm64: 'aarch64', s390x: 's390x' };

/**
 * Makes the daemon start QEMU and ask it what it can do, which libvirt otherwise does at the first define of every pod
 * (a third of a second with TCG). The answers stay in the daemon's cache.
 *
 * A failure costs nothing but the time that was to be saved.
 */
export async function warmUpLibvirt(
  libvirt: Pick<LibvirtPort, 'getDomainCapabilities'>,
  virtType: 'kvm' | 'qemu',
  log: Logger,
): Promise<void> {
  const arch = ARCH[process.arch] ?? process.arch;
  const span = startSpan(log, 'libvirt probes QEMU');
  try {
    await libvirt.getDomainCapabilities(arch, MACHINE[arch] ?? '', virtType);
    span.end();
  } catch (caught) {
    span.fail(caught);
  }
}
