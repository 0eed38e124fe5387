import { connectCmd, unwrap } from '@virtwire/shared-proto';
import { launcherSocketOf } from '../sandbox/pod-files.ts';
import type { NodeLayout } from '../state/layout.ts';

const PROBE_MS = 10_000;

/**
 * Asks a launcher for its QEMU's version, as a readiness probe would. It can answer once libvirt knows its QEMU, which
 * takes longer than all the rest of a launcher's start: a VM that is handed over before would have to wait for it.
 */
export async function probeLauncher(layout: NodeLayout, podUid: string, signal: AbortSignal): Promise<void> {
  using client = await connectCmd(launcherSocketOf(layout.podsMount, podUid), { signal });
  unwrap(await client.getQemuVersion({}, { timeoutMs: PROBE_MS, signal }));
}
