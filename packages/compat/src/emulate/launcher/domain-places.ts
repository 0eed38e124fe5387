/**
 * Where the types of the domain JSON whose keys changed between releases lie in the document. `*` stands for each item
 * of a list, `**` for any depth.
 *
 * @source domain-json.md 7
 */
export const TYPE_PLACES: Readonly<Record<string, readonly string[]>> = {
  Address: ['**.Address'],
  BackupMetadata: ['Spec.Metadata.KubeVirt.Backup'],
  BlockIO: ['Spec.Devices.Disks.*.BlockIO'],
  BootMenu: ['Spec.OS.BootMenu'],
  Controller: ['Spec.Devices.Controllers.*'],
  Devices: ['Spec.Devices'],
  Disk: ['Spec.Devices.Disks.*'],
  DiskDriver: ['Spec.Devices.Disks.*.Driver'],
  DiskSource: ['Spec.Devices.Disks.*.Source', 'Spec.Devices.Disks.*.BackingStore.Source'],
  DomainSpec: ['Spec'],
  FeatureHyperv: ['Spec.Features.Hyperv'],
  'FeatureHyperv.TLBFlush': ['Spec.Features.Hyperv.TLBFlush'],
  Features: ['Spec.Features'],
  HostDevice: ['Spec.Devices.HostDevices.*'],
  Interface: ['Spec.Devices.Interfaces.*'],
  KubeVirtMetadata: ['Spec.Metadata.KubeVirt'],
  LaunchSecurity: ['Spec.LaunchSecurity'],
  MemBalloon: ['Spec.Devices.Ballooning'],
  MemoryTarget: ['Spec.Devices.Memory.Target'],
  MigrationMetadata: ['Spec.Metadata.KubeVirt.Migration'],
  NUMACell: ['Spec.CPU.NUMA.Cells.*'],
  NVRam: ['Spec.OS.NVRam'],
  OS: ['Spec.OS'],
  Reservations: ['**.Reservations'],
  Serial: ['Spec.Devices.Serials.*'],
  Status: ['Status'],
  TPMBackend: ['Spec.Devices.TPMs.*.Backend'],
};

/** An object of a JSON document. */
export type JsonObject = Record<string, unknown>;

/** The objects at a place of a document. */
export function objectsAt(document: unknown, place: string): readonly JsonObject[] {
  return find(document, place.split('.'));
}

function find(value: unknown, path: readonly string[]): readonly JsonObject[] {
  const [step, ...rest] = path;
  if (typeof value !== 'object' || value === null) return [];
  if (step === undefined) return Array.isArray(value) ? [] : [value as JsonObject];
  if (step === '*') return Array.isArray(value) ? value.flatMap((item: unknown) => find(item, rest)) : [];
  if (step === '**')
    return [...find(value, rest), ...Object.values(value).flatMap((item: unknown) => find(item, path))];
  return Array.isArray(value) ? [] : find((value as JsonObject)[step], rest);
}
