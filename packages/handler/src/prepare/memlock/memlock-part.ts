import { listProcesses, setLimit } from '@virtwire/host';
import type { ProcessStat } from '@virtwire/host';
import type { ClusterConfig } from '../../cluster-config.ts';
import { HandlerError } from '../../errors.ts';
import type { OptionalParts } from '../parts.ts';
import { lockedMemoryBytes } from './locked-memory.ts';

const DAEMONS: ReadonlySet<string> = new Set(['virtqemud', 'libvirtd']);

function isQemu({ comm }: ProcessStat): boolean {
  return comm.startsWith('qemu-system') || comm.startsWith('qemu-kvm');
}

/** QEMU of a launcher when it runs, else the libvirt daemon that will start it and hand its limits on. */
function findTarget(launcherPid: number, monitorPid: number): number | undefined {
  const all = listProcesses();
  const parents = new Set([launcherPid, monitorPid]);
  const descendants: ProcessStat[] = [];
  for (let grew = true; grew;) {
    const found = all.filter((one) => parents.has(one.parentPid) && !parents.has(one.pid));
    for (const one of found) parents.add(one.pid);
    descendants.push(...found);
    grew = found.length > 0;
  }
  return (descendants.find(isQemu) ?? descendants.find((one) => DAEMONS.has(one.comm)))?.pid;
}

/**
 * Raises the limit of locked memory of the process that runs, or will start, the guest.
 *
 * @source KubeVirt v1.9.0 pkg/hypervisor/kvm/runtime.go (AdjustResources)
 */
export function createMemlockPart(config: () => ClusterConfig): NonNullable<OptionalParts['memlock']> {
  return {
    async adjust(vmi, launcher) {
      const pid = findTarget(launcher.pid, launcher.ppid);
      if (pid === undefined) {
        throw new HandlerError('LauncherUnreachable', `no QEMU or libvirt daemon below process ${launcher.pid}`);
      }
      const bytes = lockedMemoryBytes(vmi, config().guestMemoryOverheadRatio);
      setLimit(pid, 'memlock', { soft: bytes, hard: bytes });
    },
  };
}
