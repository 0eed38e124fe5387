import { copyDescriptors } from '@virtwire/host';
import { connect } from '@virtwire/libvirt';
import type { Connection } from '@virtwire/libvirt';
import type { Logger } from '@virtwire/telemetry';
import { LauncherError } from '../errors.ts';

const WAIT_FOR_DAEMON_MS = 15_000;
/**
 * A VM goes on without libvirt, so the launcher lives as long as QEMU does, whatever keeps the daemon away. It is the
 * launcher's own daemon, started again at once: whoever asks for something when it is back shall not hear that it is not,
 * and the launcher's connections shall not be back seconds apart.
 */
const RECONNECT = { giveUpAfterMs: Infinity, maxDelayMs: 250 };

/**
 * Connects to the launcher's own libvirt daemon, which may still be starting. A connection that is lost later comes back
 * with the daemon, however long that takes.
 *
 * @param daemonName `virtqemud` or `libvirtd`, for the error.
 * @throws {LauncherError} `LibvirtUnavailable` after 15 s
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/cli/libvirt.go:670
 */
export async function connectToDaemon(
  socketPath: string,
  isSession: boolean,
  daemonName: string,
  log: Logger,
): Promise<Connection> {
  const uri = isSession ? `qemu+unix:///session?socket=${socketPath}` : `qemu+unix:///system?socket=${socketPath}`;
  log.info(`Connecting to libvirt daemon: ${uri}`);
  try {
    const waitForDaemonMs = WAIT_FOR_DAEMON_MS;
    const connection = await connect({ uri, socketPath, waitForDaemonMs, reconnect: RECONNECT, copyDescriptors });
    log.info('Connected to libvirt daemon');
    return connection;
  } catch (caught) {
    throw LauncherError.from(caught, 'LibvirtUnavailable', `failed to connect to ${daemonName}: `);
  }
}
