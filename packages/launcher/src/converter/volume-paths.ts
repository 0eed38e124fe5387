import { basename } from 'node:path/posix';

import type { Vmi, Volume } from '@virtwire/vm-model';

import type { DomainPaths } from './circumstances.ts';

/** Where the launcher finds or makes what a volume holds. Names come from validated Kubernetes names. */

/** Image of a filesystem claim, or of a host disk (named as on the node). */
export function filesystemImage(paths: DomainPaths, volume: string, file = 'disk.img'): string {
  return `${paths.privateDir}/vmi-disks/${volume}/${basename(file)}`;
}

/** Device node of a block claim. */
export function blockDevice(volume: string): string {
  return `/dev/${volume}`;
}

/** Overlay that keeps a guest's writes off a read-only image. */
export function overlayImage(paths: DomainPaths, volume: string): string {
  return `${paths.ephemeralDir}/disk-data/${volume}/disk.qcow2`;
}

/** Image of a containerDisk by its position among all volumes. */
export function containerDiskImage(paths: DomainPaths, index: number): string {
  return `${paths.containerDiskDir}/disk_${String(index)}.img`;
}

/** Scratch disk. */
export function emptyDiskImage(paths: DomainPaths, volume: string): string {
  return `${paths.emptyDiskDir}/${volume}.qcow2`;
}

/** Hot-plugged volume: a device, or an image of that name. */
export function hotplugPath(paths: DomainPaths, volume: string, isBlock: boolean): string {
  return isBlock ? `${paths.hotplugDir}/${volume}` : `${paths.hotplugDir}/${volume}.img`;
}

/** Overlay that tracks which blocks of a volume a guest changes. */
export function trackingOverlayImage(paths: DomainPaths, volume: string, isNonRoot: boolean): string {
  const dir = isNonRoot ? `${paths.privateDir}/libvirt/qemu` : '/var/lib/libvirt/qemu';
  return `${dir}/cbt/${volume}.qcow2`;
}

/** cloud-init image of a VMI. */
export function cloudInitImage(paths: DomainPaths, vmi: Vmi, kind: 'noCloud' | 'configDrive'): string {
  const file = kind === 'noCloud' ? 'noCloud.iso' : 'configdrive.iso';
  return `${paths.ephemeralDir}/cloud-init-data/${vmi.metadata.namespace}/${vmi.metadata.name}/${file}`;
}

/** Image made of a config map, secret, downward API, service account or sysprep volume; undefined for others. */
export function configImage(paths: DomainPaths, volume: Volume): string | undefined {
  const { privateDir } = paths;
  if (volume.configMap !== undefined) return `${privateDir}/config-map-disks/${volume.name}.iso`;
  if (volume.secret !== undefined) return `${privateDir}/secret-disks/${volume.name}.iso`;
  if (volume.downwardAPI !== undefined) return `${privateDir}/downwardapi-disks/${volume.name}.iso`;
  if (volume.serviceAccount !== undefined) return `${privateDir}/service-account-disk/service-account.iso`;
  if (volume.sysprep !== undefined) return `${privateDir}/sysprep-disks/${volume.name}.iso`;
  return undefined;
}

/** Disk through which the guest reads metrics of its host. */
export function downwardMetricsDisk(paths: DomainPaths): string {
  return `${paths.privateDir}/downwardapi-disks/vhostmd0`;
}
