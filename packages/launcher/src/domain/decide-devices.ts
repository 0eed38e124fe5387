import { hashedPodLinkName, tapDeviceName } from '@virtwire/vm-model';
import type { DomainDisk, DomainInterface, DomainSpec, Vmi } from '@virtwire/vm-model';
import { backendPath } from '../converter/disk-backend.ts';

/** One change of a running domain's devices. */
export type DeviceStep =
  | { readonly kind: 'detachDisk'; readonly disk: DomainDisk }
  /** Once its bytes are there. */
  | { readonly kind: 'attachDisk'; readonly disk: DomainDisk }
  /** The drive with its new medium, or with none; once the medium is there. */
  | { readonly kind: 'changeMedium'; readonly disk: DomainDisk }
  | { readonly kind: 'plugInterfaces'; readonly interfaces: readonly DomainInterface[] }
  | { readonly kind: 'unplugInterface'; readonly nic: DomainInterface }
  | { readonly kind: 'setLink'; readonly nic: DomainInterface };

const PLUGGABLE_BUSES: ReadonlySet<string> = new Set(['', 'virtio', 'scsi']);

type DisksByTarget = ReadonlyMap<string, DomainDisk>;

function byTarget(spec: DomainSpec): DisksByTarget {
  return new Map((spec.Devices.Disks ?? []).map((disk) => [disk.Target?.Device ?? '', disk]));
}

/**
 * What the disks of a running domain lack or have too much of against what its VMI asks for: first what goes, then what
 * comes, then media of CD-ROM drives.
 *
 * @param hotplugDir directory of the disks that come and go; others stay as they are.
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/manager.go:1485
 */
export function decideDiskSteps(live: DomainSpec, wanted: DomainSpec, hotplugDir: string): readonly DeviceStep[] {
  const before = byTarget(live);
  const after = byTarget(wanted);
  const isHotplug = (disk: DomainDisk): boolean => backendPath(disk).startsWith(hotplugDir);
  const isPluggable = (disk: DomainDisk): boolean => isHotplug(disk) && PLUGGABLE_BUSES.has(disk.Target?.Bus ?? '');
  const missingIn = (there: DisksByTarget, disks: DisksByTarget): readonly DomainDisk[] =>
    [...disks].flatMap(([target, disk]) => (isPluggable(disk) && !there.has(target) ? [disk] : []));
  const isDrive = (disk: DomainDisk): boolean =>
    disk.Device === 'cdrom' && (isHotplug(disk) || backendPath(disk) === '');
  const drives = [...before].flatMap(([target, disk]): DeviceStep[] => {
    const medium = after.get(target);
    if (!isDrive(disk) || (medium !== undefined && !isDrive(medium))) return [];
    if (backendPath(disk) === (medium === undefined ? '' : backendPath(medium))) return [];
    return [{ kind: 'changeMedium', disk: withMedium(disk, medium) }];
  });
  return [
    ...missingIn(after, before).map((disk) => ({ kind: 'detachDisk', disk }) as const),
    ...missingIn(before, after).map((disk) => ({ kind: 'attachDisk', disk }) as const),
    ...drives,
  ];
}

function withMedium(drive: DomainDisk, medium: DomainDisk | undefined): DomainDisk {
  const Source = medium?.Source ?? {};
  const Type = (Source.File ?? '') === '' ? 'block' : 'file';
  return { ...drive, Type, Source, Driver: { ...drive.Driver, Type: 'raw' } };
}

function interfaceOf(spec: DomainSpec, name: string): DomainInterface | undefined {
  return spec.Devices.Interfaces?.find((nic) => nic.Alias?.Name === name);
}

/** Interfaces of old VMs, whose taps have ordinal names, stay: their names may belong to another interface by now. */
function isUnpluggable(vmi: Vmi, nic: DomainInterface, name: string): boolean {
  const network = vmi.spec.networks?.find((candidate) => candidate.name === name);
  return network !== undefined && nic.Target?.Device === tapDeviceName(hashedPodLinkName(name), network);
}

/**
 * What the network cards of a running domain lack or have too much of. Nothing before the VMI is Running: until then
 * its networks are not all there.
 *
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/nichotplug.go
 */
export function decideInterfaceSteps(vmi: Vmi, live: DomainSpec, wanted: DomainSpec): readonly DeviceStep[] {
  if (vmi.status?.phase !== 'Running') return [];
  const plugged: DomainInterface[] = [];
  const unplugs: DeviceStep[] = [];
  const links: DeviceStep[] = [];
  for (const { name, state, sriov } of vmi.spec.domain.devices.interfaces ?? []) {
    const before = interfaceOf(live, name);
    const after = interfaceOf(wanted, name);
    const status = vmi.status.interfaces?.find((nic) => nic.name === name);
    const isInPod = status?.infoSource?.includes('multus-status') === true;
    if (state === 'absent') {
      if (before !== undefined && isUnpluggable(vmi, before, name))
        unplugs.push({ kind: 'unplugInterface', nic: before });
    } else if (before === undefined) {
      if (after !== undefined && isInPod && sriov === undefined) plugged.push(after);
    } else if (after !== undefined && (after.LinkState?.State ?? '') !== (before.LinkState?.State ?? '')) {
      links.push({ kind: 'setLink', nic: { ...before, LinkState: after.LinkState } });
    }
  }
  const plugs: DeviceStep[] = plugged.length === 0 ? [] : [{ kind: 'plugInterfaces', interfaces: plugged }];
  return [...plugs, ...unplugs, ...links];
}
