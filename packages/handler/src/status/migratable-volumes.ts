import type { PersistentVolumeClaimInfo, Vmi, Volume } from '../model.ts';

/** Why the volumes stand against a live migration, and whether their content has to move along. */
export interface VolumeMigration {
  readonly error: string | undefined;
  readonly isBlockMigration: boolean;
}

const NOT_SHARED = 'live migration requires that all PVCs must be shared (using ReadWriteMany access mode)';

function isShared(claim: PersistentVolumeClaimInfo): boolean {
  return claim.accessModes?.includes('ReadWriteMany') === true;
}

function migratedVolumes(vmi: Vmi): ReadonlySet<unknown> {
  const volumes = (vmi.status?.migratedVolumes ?? []) as readonly { volumeName?: string }[];
  return new Set(volumes.map((volume) => volume.volumeName));
}

function isOnReadOnlyCdrom(vmi: Vmi, name: string): boolean {
  return (vmi.spec.domain.devices.disks ?? []).some(
    (disk) => disk.name === name && disk.cdrom !== undefined && disk.cdrom.readonly !== false,
  );
}

function claimError(vmi: Vmi, volume: Volume, claim: PersistentVolumeClaimInfo | undefined): string | undefined {
  const name = volume.persistentVolumeClaim?.claimName ?? volume.dataVolume?.name ?? claim?.claimName ?? '';
  if (claim === undefined) return `cannot migrate VMI: Unable to determine if PVC ${name} is shared, ${NOT_SHARED}`;
  if (isShared(claim) || migratedVolumes(vmi).has(volume.name)) return undefined;
  return `cannot migrate VMI: PVC ${name} is not shared, ${NOT_SHARED}`;
}

function hostDiskError(vmi: Vmi, volume: Volume, claim: PersistentVolumeClaimInfo | undefined): string | undefined {
  if (claim !== undefined) return claimError(vmi, volume, claim);
  return volume.hostDisk?.shared === true ? undefined : 'cannot migrate VMI with non-shared HostDisk';
}

/**
 * Looks at every volume in the order of the spec; the first that stands against a migration wins.
 *
 * @source KubeVirt v1.9.0 pkg/virt-handler/vm.go (checkVolumesForMigration)
 */
export function volumeMigration(vmi: Vmi): VolumeMigration {
  const claims = new Map(
    (vmi.status?.volumeStatus ?? []).map((status) => [status.name, status.persistentVolumeClaimInfo]),
  );
  const shared = new Set((vmi.spec.domain.devices.filesystems ?? []).map((filesystem) => filesystem.name));
  let isBlockMigration = (vmi.status?.migratedVolumes ?? []).length > 0;
  for (const volume of vmi.spec.volumes ?? []) {
    const claim = claims.get(volume.name);
    let error: string | undefined;
    if (volume.persistentVolumeClaim !== undefined || volume.dataVolume !== undefined) {
      error = claimError(vmi, volume, claim);
    } else if (volume.hostDisk !== undefined) {
      error = hostDiskError(vmi, volume, claim);
    } else if (!shared.has(volume.name) && !isOnReadOnlyCdrom(vmi, volume.name)) {
      isBlockMigration = true;
    }
    if (error !== undefined) return { error, isBlockMigration: true };
  }
  return { error: undefined, isBlockMigration };
}
