import { VmModelError } from '../errors.ts';
import type { VmiDisk } from '../vmi/devices.ts';
import type { Probe, VmiSpec } from '../vmi/vmi.ts';
import type { ClusterDefaults } from './cluster.ts';

/** Image pull policies, and a disk for every volume that has neither disk nor filesystem. */
export function defaultVolumes(spec: VmiSpec): void {
  for (const { containerDisk } of spec.volumes ?? []) {
    if (containerDisk === undefined || containerDisk.imagePullPolicy) continue;
    const isFloating = containerDisk.image.endsWith(':latest') || !/[:@]/.test(containerDisk.image);
    containerDisk.imagePullPolicy = isFloating ? 'Always' : 'IfNotPresent';
  }
  const { devices } = spec.domain;
  const named = new Set([...(devices.disks ?? []), ...(devices.filesystems ?? [])].map((device) => device.name));
  const missing = (spec.volumes ?? []).filter((volume) => !named.has(volume.name));
  if (missing.length === 0) return;
  devices.disks = [...(devices.disks ?? []), ...missing.map(({ name }): VmiDisk => ({ name }))];
}

/** The pod network with the cluster's binding for a VMI that names no network. */
export function defaultInterface(spec: VmiSpec, cluster: ClusterDefaults): void {
  const { devices } = spec.domain;
  if (devices.autoattachPodInterface === false) return;
  if ((spec.networks?.length ?? 0) > 0 || (devices.interfaces?.length ?? 0) > 0) return;
  if (cluster.networkInterface === 'bridge' && !cluster.permitBridgeOnPodNetwork) {
    throw new VmModelError('InvalidVmi', 'Bridge interface is not enabled in kubevirt-config');
  }
  devices.interfaces = [
    cluster.networkInterface === 'masquerade' ? { name: 'default', masquerade: {} } : { name: 'default', bridge: {} },
  ];
  spec.networks = [{ name: 'default', pod: {} }];
}

/** Kinds of disks, CD-ROM trays, inputs, display options and probe periods. */
export function defaultDevices(spec: VmiSpec): void {
  const { devices } = spec.domain;
  for (const disk of devices.disks ?? []) defaultDisk(disk);
  for (const input of devices.inputs ?? []) {
    input.bus ||= 'usb';
    input.type ||= 'tablet';
  }
  for (const gpu of devices.gpus ?? []) {
    const ramFb = gpu.virtualGPUOptions?.display?.ramFB;
    if (ramFb !== undefined) ramFb.enabled ??= true;
  }
  for (const probe of [spec.livenessProbe, spec.readinessProbe]) if (probe !== undefined) defaultProbe(probe);
}

function defaultDisk(disk: VmiDisk): void {
  if (disk.disk === undefined && disk.cdrom === undefined && disk.lun === undefined) disk.disk = {};
  if (disk.cdrom !== undefined) {
    disk.cdrom.readonly ??= true;
    if ((disk.cdrom.tray ?? '') === '') disk.cdrom.tray = 'closed';
  }
  const match = disk.blockSize?.matchVolume;
  if (match !== undefined) match.enabled ??= true;
}

function defaultProbe(probe: Probe): void {
  if ((probe.timeoutSeconds ?? 0) < 1) probe.timeoutSeconds = 1;
  if ((probe.periodSeconds ?? 0) < 1) probe.periodSeconds = 10;
  if ((probe.successThreshold ?? 0) < 1) probe.successThreshold = 1;
  if ((probe.failureThreshold ?? 0) < 1) probe.failureThreshold = 3;
}
