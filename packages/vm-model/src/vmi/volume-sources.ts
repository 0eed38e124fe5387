import type { Vmi } from './vmi.ts';
import type { Volume } from './volumes.ts';

/** What backs a volume. */
export type VolumeKind = Exclude<keyof Volume, 'name'>;

const KINDS: readonly VolumeKind[] = [
  'hostDisk',
  'persistentVolumeClaim',
  'cloudInitNoCloud',
  'cloudInitConfigDrive',
  'sysprep',
  'containerDisk',
  'ephemeral',
  'emptyDisk',
  'dataVolume',
  'configMap',
  'secret',
  'downwardAPI',
  'serviceAccount',
  'downwardMetrics',
  'memoryDump',
];

/** What backs a volume; undefined for a source that this release does not know. */
export function volumeKind(volume: Volume): VolumeKind | undefined {
  const sources: Readonly<Record<string, unknown>> = { ...volume };
  return KINDS.find((kind) => (sources[kind] ?? null) !== null);
}

/** The claim behind a volume, also that of a data volume (they share the name). */
export function claimNameOf(volume: Volume): string | undefined {
  return volume.persistentVolumeClaim?.claimName ?? volume.dataVolume?.name ?? volume.memoryDump?.claimName;
}

/** Whether a volume comes and goes while the VM runs, in a pod of its own. */
export function isHotplugVolume(volume: Volume): boolean {
  return (
    volume.persistentVolumeClaim?.hotpluggable === true ||
    volume.dataVolume?.hotpluggable === true ||
    volume.containerDisk?.hotpluggable === true ||
    volume.memoryDump?.hotpluggable === true
  );
}

/** Finds a volume of a VMI by name. */
export function findVolume(vmi: Vmi, name: string): Volume | undefined {
  return vmi.spec.volumes?.find((volume) => volume.name === name);
}
