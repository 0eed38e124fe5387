import { hashedPodLinkName, tapDeviceName } from '@virtwire/vm-model';
import type { DomainDisk, DomainSpec, Vmi } from '@virtwire/vm-model';

function sourceOf(disk: DomainDisk): string {
  const source = disk.Source;
  const backend = source?.DataStore?.Source;
  return (
    [backend?.File, backend?.Dev, source?.File, source?.Dev].find((path) => path !== undefined && path !== '') ?? ''
  );
}

function diskTargets(disks: readonly DomainDisk[] | undefined): ReadonlyMap<string, DomainDisk> {
  return new Map((disks ?? []).map((disk) => [disk.Target?.Device ?? '', disk]));
}

function pluggableDisks(spec: DomainSpec, hotplugDir: string): readonly DomainDisk[] {
  return (spec.Devices.Disks ?? []).filter((disk) => sourceOf(disk).startsWith(hotplugDir));
}

function linkStateOf(spec: DomainSpec, name: string): string | undefined {
  const found = spec.Devices.Interfaces?.find((nic) => nic.Alias?.Name === name);
  return found === undefined ? undefined : (found.LinkState?.State ?? '');
}

/** Interfaces of old VMs, whose taps have ordinal names, stay: their names may belong to another interface by now. */
function isUnpluggable(vmi: Vmi, live: DomainSpec, name: string): boolean {
  const network = vmi.spec.networks?.find((candidate) => candidate.name === name);
  if (network === undefined) return false;
  const device = live.Devices.Interfaces?.find((nic) => nic.Alias?.Name === name)?.Target?.Device;
  return device === tapDeviceName(hashedPodLinkName(name), network);
}

/**
 * Names what a running domain lacks or has too much of against what its VMI asks for, one sentence each: disks and
 * interfaces that are to be plugged, unplugged or changed. Empty for a VM that is as it should be.
 *
 * @param hotplugDir directory of the disks that come and go.
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/manager.go:1485
 */
export function listPendingChanges(vmi: Vmi, live: DomainSpec, wanted: DomainSpec, hotplugDir: string): string[] {
  const changes: string[] = [];
  const liveTargets = diskTargets(live.Devices.Disks);
  const wantedTargets = diskTargets(wanted.Devices.Disks);
  for (const disk of pluggableDisks(wanted, hotplugDir)) {
    const target = disk.Target?.Device ?? '';
    const there = liveTargets.get(target);
    if (there === undefined) changes.push(`plug disk ${disk.Alias?.Name ?? target}`);
    else if (sourceOf(there) !== sourceOf(disk))
      changes.push(`change the source of disk ${disk.Alias?.Name ?? target}`);
  }
  for (const disk of pluggableDisks(live, hotplugDir)) {
    const target = disk.Target?.Device ?? '';
    if (!wantedTargets.has(target)) changes.push(`unplug disk ${disk.Alias?.Name ?? target}`);
  }
  if (vmi.status?.phase !== 'Running') return changes;
  for (const { name, state, sriov } of vmi.spec.domain.devices.interfaces ?? []) {
    const before = linkStateOf(live, name);
    const status = vmi.status.interfaces?.find((nic) => nic.name === name);
    const isAttached = status?.infoSource?.includes('multus-status') === true;
    if (state === 'absent') {
      if (before !== undefined && isUnpluggable(vmi, live, name)) changes.push(`unplug interface ${name}`);
    } else if (before === undefined && isAttached && sriov === undefined) {
      changes.push(`plug interface ${name}`);
    } else if (before !== undefined && (linkStateOf(wanted, name) ?? before) !== before) {
      changes.push(`set the link of interface ${name}`);
    }
  }
  return changes;
}
