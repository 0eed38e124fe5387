import type { Domain, Vmi, VolumeStatus } from '../model.ts';
import type { StatusEvent } from './facts.ts';

/** New volume entries, with the events of changed phases and whether to look again in a second. */
export interface VolumeResult {
  readonly volumes: VolumeStatus[] | undefined;
  readonly events: readonly StatusEvent[];
  readonly needsRefresh: boolean;
}

interface Step {
  readonly status: VolumeStatus;
  readonly needsRefresh: boolean;
}

const BEFORE_MOUNT: ReadonlySet<string> = new Set(['Bound', 'Pending', 'AttachedToNode']);
const BEFORE_UNMOUNT: ReadonlySet<string> = new Set(['Ready', 'MountedToPod', 'AttachedToNode']);

function targetsByVolume(domain: Domain | undefined): ReadonlyMap<string, string> {
  const targets = new Map<string, string>();
  for (const disk of domain?.Spec.Devices.Disks ?? []) {
    const alias = disk.Alias?.Name ?? '';
    const name = alias.startsWith('ua-') ? alias.slice(3) : alias;
    const hasSource = Boolean(disk.Source?.File) || Boolean(disk.Source?.Dev);
    if (name !== '' && hasSource) targets.set(name, disk.Target?.Device ?? '');
  }
  return targets;
}

/** @source KubeVirt v1.9.0 pkg/virt-handler/vm.go (updateHotplugVolumeStatus) */
function hotplugStep(vmi: Vmi, status: VolumeStatus, isMounted: boolean): Step {
  const { name } = status;
  if (status.target !== '') {
    if (status.phase === 'Ready') return { status, needsRefresh: false };
    const message = `Successfully attach hotplugged volume ${name} to VM`;
    return { status: { ...status, phase: 'Ready', reason: 'VolumeReady', message }, needsRefresh: false };
  }
  const inSpec =
    (vmi.spec.volumes ?? []).some((volume) => volume.name === name) ||
    (vmi.spec.utilityVolumes ?? []).some((volume) => volume.name === name);
  const phase = status.phase ?? '';
  if (isMounted && inSpec && BEFORE_MOUNT.has(phase)) {
    const message = `Volume ${name} has been mounted in virt-launcher pod`;
    return { status: { ...status, phase: 'MountedToPod', reason: 'VolumeMountedToPod', message }, needsRefresh: true };
  }
  if (!isMounted && !inSpec && BEFORE_UNMOUNT.has(phase)) {
    const message = `Volume ${name} has been unmounted from virt-launcher pod`;
    const next = { ...status, phase: 'UnMountedFromPod', reason: 'VolumeUnMountedFromPod', message };
    return { status: next, needsRefresh: true };
  }
  return { status, needsRefresh: true };
}

function dumpFileName(vmi: Vmi, volume: string, nowMs: number): string {
  const now = new Date(nowMs);
  const two = (value: number): string => String(value).padStart(2, '0');
  const date = `${now.getFullYear()}${two(now.getMonth() + 1)}${two(now.getDate())}`;
  const time = `${two(now.getHours())}${two(now.getMinutes())}${two(now.getSeconds())}`;
  return `${vmi.metadata.name}-${volume}-${date}-${time}.memory.dump`;
}

/** @source KubeVirt v1.9.0 pkg/virt-handler/vm.go (updateMemoryDumpInfo) */
function memoryDumpStep(vmi: Vmi, status: VolumeStatus, domain: Domain | undefined, nowMs: number): Step {
  const info = status.memoryDumpVolume;
  if (info === undefined) return { status, needsRefresh: false };
  const { name } = status;
  if (status.phase === 'MountedToPod') {
    const next: VolumeStatus = {
      ...status,
      phase: 'MemoryDumpInProgress',
      message: `Memory dump Volume ${name} is attached, getting memory dump`,
      reason: 'VolumeMountedToPod',
      memoryDumpVolume: { ...info, targetFileName: dumpFileName(vmi, name, nowMs) },
    };
    return { status: next, needsRefresh: true };
  }
  const dump = domain?.Spec.Metadata.KubeVirt.MemoryDump;
  if (status.phase !== 'MemoryDumpInProgress' || dump === undefined || dump.FileName !== info.targetFileName) {
    return { status, needsRefresh: false };
  }
  const started = dump.StartTimestamp ? { ...info, startTimestamp: dump.StartTimestamp } : info;
  const ended = dump.EndTimestamp ? { ...started, endTimestamp: dump.EndTimestamp } : started;
  if (dump.EndTimestamp && dump.Failed === true) {
    const message = `Memory dump to pvc ${name} failed: ${dump.FailureReason ?? ''}`;
    return { status: { ...status, phase: 'MemoryDumpFailed', message, memoryDumpVolume: ended }, needsRefresh: true };
  }
  if (dump.Completed === true) {
    const message = `Memory dump to Volume ${name} has completed successfully`;
    const next = { ...status, phase: 'MemoryDumpCompleted', reason: 'VolumeReady', message, memoryDumpVolume: ended };
    return { status: next, needsRefresh: true };
  }
  return { status: { ...status, memoryDumpVolume: started }, needsRefresh: true };
}

/**
 * `status.volumeStatus`: targets of the domain's disks, and the life of hot-plugged and memory dump volumes.
 *
 * Entries come and go with virt-controller only; they are sorted by name.
 *
 * @source KubeVirt v1.9.0 pkg/virt-handler/vm.go (updateVolumeStatusesFromDomain)
 */
export function volumeStatuses(
  vmi: Vmi,
  old: readonly VolumeStatus[],
  domain: Domain | undefined,
  mounted: ReadonlySet<string>,
  nowMs: number,
): VolumeResult {
  const targets = targetsByVolume(domain);
  const events: StatusEvent[] = [];
  let needsRefresh = false;
  const volumes = old.map((entry) => {
    const plain: VolumeStatus = { ...entry, target: targets.get(entry.name) ?? '' };
    const plugged =
      entry.hotplugVolume === undefined
        ? { status: plain, needsRefresh: false }
        : hotplugStep(vmi, plain, mounted.has(entry.name));
    const dumped = memoryDumpStep(vmi, plugged.status, domain, nowMs);
    needsRefresh ||= plugged.needsRefresh || dumped.needsRefresh;
    const { phase = '', reason = '', message = '' } = dumped.status;
    if (phase !== (entry.phase ?? '')) events.push({ type: 'Normal', reason, message });
    return dumped.status;
  });
  volumes.sort((a, b) => (a.name < b.name ? -1 : Number(a.name > b.name)));
  return { volumes, events, needsRefresh };
}
