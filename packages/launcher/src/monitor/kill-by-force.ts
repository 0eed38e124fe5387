import type { Logger } from '@virtwire/telemetry';
import type { Clock } from '../config/clock.ts';
import { TOO_LATE, within } from '../config/within.ts';
import { LauncherError, textOf } from '../errors.ts';

/** How long libvirt may take; a pod is killed 15 s after its grace period. */
const LIBVIRT_LIMIT_MS = 5_000;

/** What ending a VM by force needs. */
export interface ForceDeps {
  readonly clock: Clock;
  readonly log: Logger;
  /** Has libvirt end QEMU. */
  readonly kill: () => Promise<void>;
  /** Tells a process to end. */
  readonly terminate: (pid: number) => void;
}

/**
 * Has libvirt end the VM, but does not wait for it for ever.
 *
 * @throws {LauncherError} `LibvirtUnavailable` when there is no answer within 5 s; else what libvirt said
 */
export async function killInTime({ clock, kill }: Pick<ForceDeps, 'clock' | 'kill'>): Promise<void> {
  if ((await within(clock, LIBVIRT_LIMIT_MS, kill())) !== TOO_LATE) return;
  throw new LauncherError('LibvirtUnavailable', `no answer within ${String(LIBVIRT_LIMIT_MS / 1_000)} s`);
}

/**
 * Ends the VM when its grace period is over: by libvirt, and by a signal to QEMU when libvirt cannot or does not answer.
 *
 * @param pid QEMU's; undefined while it is not known.
 * @source KubeVirt v1.9.0 cmd/virt-launcher/virt-launcher.go:440
 */
export async function killByForce(deps: ForceDeps, pid: number | undefined): Promise<void> {
  const { log } = deps;
  try {
    await killInTime(deps);
  } catch (caught) {
    log.error({ reason: caught }, 'Unable to stop qemu with libvirt');
    if (pid === undefined) return;
    log.warn('Falling back to SIGTERM');
    try {
      deps.terminate(pid);
    } catch (failed) {
      log.warn(`QEMU is gone already: ${textOf(failed)}`);
    }
  }
}
