import { isHotplugVolume, quantityValue } from '@virtwire/vm-model';
import type { DomainDisk, MigratedVolume, PersistentVolumeClaimInfo, Vmi, Volume } from '@virtwire/vm-model';

/**
 * What becomes of a volume's bytes: `shared` ones are there on both nodes, `local` ones are copied to another volume,
 * `generated` ones are copied although the guest cannot write them.
 */
export type VolumeClass = 'shared' | 'local' | 'generated';

const STORAGE = 'storage';
const COPIED_TYPES: ReadonlySet<string | undefined> = new Set(['file', 'block']);
const BILLION = 1_000_000_000n;

function classOf(volume: Volume, isMigrated: boolean): VolumeClass | undefined {
  const { configMap, secret, downwardAPI, serviceAccount, cloudInitNoCloud, cloudInitConfigDrive, containerDisk } =
    volume;
  if (volume.persistentVolumeClaim !== undefined || volume.dataVolume !== undefined) {
    return isMigrated ? 'local' : 'shared';
  }
  if (volume.hostDisk !== undefined) {
    if (isMigrated) return 'local';
    return volume.hostDisk.shared === true ? 'shared' : undefined;
  }
  const generated = [configMap, secret, downwardAPI, serviceAccount, cloudInitNoCloud, cloudInitConfigDrive];
  return [...generated, containerDisk].some((source) => source !== undefined) ? 'generated' : undefined;
}

/**
 * Classes of a VMI's volumes by name; the others' disks are copied unless they are read-only.
 *
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/live-migration-source.go classifyVolumesForMigration
 */
export function classifyVolumes(vmi: Vmi): ReadonlyMap<string, VolumeClass> {
  const migrated = new Set((vmi.status?.migratedVolumes ?? []).map(({ volumeName }) => volumeName));
  return new Map(
    (vmi.spec.volumes ?? []).flatMap((volume) => {
      const found = classOf(volume, migrated.has(volume.name));
      return found === undefined ? [] : [[volume.name, found] as const];
    }),
  );
}

/** Targets (`vda`) of the disks whose bytes a migration takes along. */
export function disksToCopy(vmi: Vmi, disks: readonly DomainDisk[]): readonly string[] {
  const classes = classifyVolumes(vmi);
  return disks.flatMap(({ Device, ReadOnly, Type, Alias, Target }) => {
    const found = classes.get(Alias?.Name ?? '');
    const isCopied =
      Device !== 'cdrom' &&
      (ReadOnly === undefined || found === 'generated') &&
      COPIED_TYPES.has(Type) &&
      found !== 'shared';
    return isCopied ? [Target?.Device ?? ''] : [];
  });
}

/** True when disks are copied to storage that the source does not see. */
export function isBlockMigration(vmi: Vmi): boolean {
  return vmi.status?.migrationMethod === 'BlockMigration' || (vmi.status?.migratedVolumes ?? []).length > 0;
}

/** The volume's move to another claim, if it is part of this migration. */
export function moveOf(vmi: Vmi, volume: string): MigratedVolume | undefined {
  return vmi.status?.migratedVolumes?.find(({ volumeName }) => volumeName === volume);
}

/** True for a volume that was plugged into the running VM. */
export function isPlugged(vmi: Vmi, name: string): boolean {
  const volume = vmi.spec.volumes?.find((candidate) => candidate.name === name);
  const status = vmi.status?.volumeStatus?.find((candidate) => candidate.name === name);
  return (volume !== undefined && isHotplugVolume(volume)) || status?.hotplugVolume !== undefined;
}

/** The request where it is smaller than the capacity. */
function claimBytes(claim: PersistentVolumeClaimInfo | undefined): bigint {
  const capacity = claim?.capacity?.[STORAGE];
  const request = claim?.requests?.[STORAGE];
  if (capacity === undefined) return request === undefined ? 0n : quantityValue(request);
  const bytes = quantityValue(capacity);
  const wanted = request === undefined ? bytes : quantityValue(request);
  return wanted < bytes ? wanted : bytes;
}

/**
 * How many seconds a migration may take: the limit per 10^9 bytes of what is moved, rounded up.
 *
 * @param ephemeralBytes size of the files below the ephemeral directory, which count where disks are copied.
 * @returns 0 for no limit.
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/live-migration-source.go getVMIMigrationDataSize
 */
export function completionBudget(vmi: Vmi, secondsPerBillion: number, ephemeralBytes: bigint): number {
  const { memory, resources } = vmi.spec.domain;
  const asked = memory?.guest ?? resources?.requests?.['memory'];
  const disks = vmi.status?.migrationMethod === 'BlockMigration' ? ephemeralBytes : 0n;
  const moved = (vmi.status?.migratedVolumes ?? []).reduce((sum, volume) => sum + claimBytes(volume.sourcePVCInfo), 0n);
  const bytes = (asked === undefined ? 0n : quantityValue(asked)) + disks + moved;
  return secondsPerBillion * Number((bytes + BILLION - 1n) / BILLION);
}

/** True when a device of the host is passed through to the guest, whose state QEMU cannot fetch later. */
export function hasVfio(vmi: Vmi): boolean {
  const { hostDevices = [], gpus = [], interfaces = [] } = vmi.spec.domain.devices;
  return hostDevices.length > 0 || gpus.length > 0 || interfaces.some(({ sriov }) => sriov !== undefined);
}
