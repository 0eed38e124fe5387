import type { LocalObjectReference, Quantity } from './metadata.ts';

/** One entry of `spec.volumes`; exactly one source besides `name` is set. */
export interface Volume {
  name: string;
  hostDisk?: HostDisk;
  persistentVolumeClaim?: PersistentVolumeClaimSource;
  cloudInitNoCloud?: CloudInitSource;
  cloudInitConfigDrive?: CloudInitSource;
  sysprep?: { secret?: LocalObjectReference; configMap?: LocalObjectReference };
  containerDisk?: ContainerDisk;
  ephemeral?: { persistentVolumeClaim?: PersistentVolumeClaimSource };
  emptyDisk?: { capacity: Quantity };
  dataVolume?: { name: string; hotpluggable?: boolean };
  configMap?: LocalObjectReference & { optional?: boolean; volumeLabel?: string };
  secret?: { secretName?: string; optional?: boolean; volumeLabel?: string };
  downwardAPI?: { fields?: unknown[]; volumeLabel?: string };
  serviceAccount?: { serviceAccountName?: string };
  downwardMetrics?: object;
  memoryDump?: PersistentVolumeClaimSource;
}

/** A file or block device of the node. */
export interface HostDisk {
  path: string;
  type: 'Disk' | 'DiskOrCreate' | (string & {});
  capacity?: Quantity;
  shared?: boolean;
}

/** A claim used as disk. */
export interface PersistentVolumeClaimSource {
  claimName: string;
  readOnly?: boolean;
  hotpluggable?: boolean;
}

/** Seed data; the inline forms are plain text or base64. */
export interface CloudInitSource {
  secretRef?: LocalObjectReference;
  userData?: string;
  userDataBase64?: string;
  networkDataSecretRef?: LocalObjectReference;
  networkData?: string;
  networkDataBase64?: string;
}

/** A disk image in a container image. */
export interface ContainerDisk {
  image: string;
  imagePullSecret?: string;
  imagePullPolicy?: string;
  path?: string;
  hotpluggable?: boolean;
}

/** One entry of `spec.utilityVolumes`: mounted for the launcher, no disk of the guest. */
export interface UtilityVolume extends Partial<PersistentVolumeClaimSource> {
  name: string;
  type?: string;
}

/** One entry of `spec.accessCredentials`. */
export interface AccessCredential {
  sshPublicKey?: {
    source: { secret?: { secretName: string } };
    propagationMethod: {
      configDrive?: object;
      noCloud?: object;
      qemuGuestAgent?: { users: string[] };
    };
  };
  userPassword?: {
    source: { secret?: { secretName: string } };
    propagationMethod: { qemuGuestAgent?: object };
  };
}
