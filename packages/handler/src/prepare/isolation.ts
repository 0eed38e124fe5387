import { peerCredentials, readProcessStat } from '@virtwire/host';
import { errorText, HandlerError } from '../errors.ts';
import type { Isolation } from './parts.ts';

/**
 * Finds the process that listens at a command socket, by the kernel's word.
 *
 * @throws {HandlerError} `LauncherUnreachable` when nobody listens, or the process is gone.
 * @source KubeVirt v1.9.0 pkg/virt-handler/isolation/detector.go:55-130
 */
export async function detectIsolation(socketFile: string): Promise<Isolation> {
  let pid: number;
  try {
    ({ pid } = await peerCredentials(socketFile));
  } catch (error) {
    const text = `Could not get owner Pid of socket ${socketFile}: ${errorText(error)}`;
    throw new HandlerError('LauncherUnreachable', text, { cause: error });
  }
  try {
    const { parentPid } = readProcessStat(pid);
    return { pid, ppid: parentPid, rootPath: `/proc/${pid}/root` };
  } catch (error) {
    const text = `Could not get owner PPid of socket ${socketFile}: ${errorText(error)}`;
    throw new HandlerError('LauncherUnreachable', text, { cause: error });
  }
}
