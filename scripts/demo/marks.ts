import type { NodeLayout, SandboxRecord } from '@virtwire/virtwire';

/** Names that tell what a node and one of its VMs have made on the machine from what others make meanwhile. */
export function marksOf(layout: NodeLayout, record: SandboxRecord | undefined): string[] {
  const { stateDir, runDir, podsMount, bridge, cgroupParent } = layout;
  const ours = [stateDir, runDir, podsMount, ` ${bridge}`, `${bridge})`, cgroupParent];
  return record === undefined ? ours : [...ours, record.podUid, record.vmiUid];
}
