import { VmModelError } from '../errors.ts';
import { parseQuantity, quantityValue, renderQuantity } from '../quantity/quantity.ts';
import type { PersistentVolumeClaimInfo, VolumeStatus } from '../vmi/status.ts';
import type { Vmi } from '../vmi/vmi.ts';
import type { Volume } from '../vmi/volumes.ts';

const DISK_DIR = '/var/run/kubevirt-private/vmi-disks';
const MIB = 1n << 20n;
const SHARED_ACCESS_MODE = 'ReadWriteMany';

/**
 * Turns filesystem claims into host disks, as the node does before it hands a VMI to its launcher: the claim is
 * mounted in the pod as a directory that holds a disk image. Block claims, hot-plugged volumes, claims of virtiofs
 * filesystems and claims without facts in the status stay as they are.
 *
 * @returns a copy; the input is not touched.
 * @throws {VmModelError} `InvalidVmi` for a claim without a size, or under 1 MiB.
 * @source KubeVirt v1.9.0 pkg/host-disk/host-disk.go
 */
export function replacePvcByHostDisk(vmi: Vmi): Vmi {
  const filesystems = new Set((vmi.spec.domain.devices.filesystems ?? []).map((filesystem) => filesystem.name));
  const statuses = new Map((vmi.status?.volumeStatus ?? []).map((status) => [status.name, status]));
  const volumes = vmi.spec.volumes?.map((volume) => {
    const claim = replaceableClaim(volume, filesystems, statuses.get(volume.name));
    return claim === undefined ? volume : toHostDisk(volume, claim);
  });
  return volumes === undefined ? vmi : { ...vmi, spec: { ...vmi.spec, volumes } };
}

function replaceableClaim(
  volume: Volume,
  filesystems: ReadonlySet<string>,
  status: VolumeStatus | undefined,
): PersistentVolumeClaimInfo | undefined {
  const isClaim =
    volume.persistentVolumeClaim !== undefined || (volume.dataVolume !== undefined && volume.dataVolume.name !== '');
  if (!isClaim || filesystems.has(volume.name) || status === undefined) return undefined;
  if (status.hotplugVolume !== undefined) return undefined;
  const claim = status.persistentVolumeClaimInfo;
  return claim?.volumeMode === 'Block' ? undefined : claim;
}

function toHostDisk(volume: Volume, claim: PersistentVolumeClaimInfo): Volume {
  const rest = { ...volume };
  delete rest.persistentVolumeClaim;
  delete rest.dataVolume;
  return {
    ...rest,
    hostDisk: {
      path: `${DISK_DIR}/${volume.name}/disk.img`,
      type: 'DiskOrCreate',
      capacity: diskCapacity(volume.name, claim),
      shared: claim.accessModes?.includes(SHARED_ACCESS_MODE) ?? false,
    },
  };
}

/** The request where it is smaller than the capacity, whole MiB, in the capacity's notation. */
function diskCapacity(name: string, claim: PersistentVolumeClaimInfo): string {
  const capacity = claim.capacity?.['storage'];
  const request = claim.requests?.['storage'];
  if (capacity === undefined && request === undefined) {
    throw new VmModelError(
      'InvalidVmi',
      'unable to determine capacity of HostDisk from PVC that provides no storage capacity or requests',
    );
  }
  const bytes = quantityValue(capacity);
  const requested = quantityValue(request);
  const wanted = request !== undefined && (capacity === undefined || requested < bytes) ? requested : bytes;
  const aligned = wanted - (wanted % MIB);
  if (aligned === 0n) {
    throw new VmModelError('InvalidVmi', `the size for volume ${name} is too low, must be at least 1MiB`);
  }
  const format = (capacity === undefined ? undefined : parseQuantity(capacity)?.format) ?? 'DecimalSI';
  return renderQuantity({ nano: aligned * 1_000_000_000n, format });
}
