import type { Uint } from '../int64.ts';
import type { VmiInterface } from './networks.ts';

/** `spec.domain.devices`. */
export interface DomainSpecDevices {
  disks?: VmiDisk[];
  interfaces?: VmiInterface[];
  inputs?: VmiInput[];
  filesystems?: VmiFilesystem[];
  gpus?: VmiGpu[];
  hostDevices?: VmiHostDevice[];
  watchdog?: VmiWatchdog;
  rng?: object;
  sound?: { name: string; model?: string };
  tpm?: { enabled?: boolean; persistent?: boolean };
  video?: { type?: string };
  panicDevices?: { model?: string }[];
  downwardMetrics?: object;
  clientPassthrough?: object;
  blockMultiQueue?: boolean;
  networkInterfaceMultiqueue?: boolean;
  useVirtioTransitional?: boolean;
  disableHotplug?: boolean;
  logSerialConsole?: boolean;
  autoattachPodInterface?: boolean;
  autoattachGraphicsDevice?: boolean;
  autoattachSerialConsole?: boolean;
  autoattachMemBalloon?: boolean;
  autoattachInputDevice?: boolean;
  autoattachVSOCK?: boolean;
}

/** One entry of `spec.domain.devices.disks`; exactly one of disk, cdrom and lun is set. */
export interface VmiDisk {
  name: string;
  disk?: { bus?: DiskBus; readonly?: boolean; pciAddress?: string };
  cdrom?: { bus?: DiskBus; readonly?: boolean; tray?: 'open' | 'closed' };
  lun?: { bus?: DiskBus; readonly?: boolean; reservation?: boolean };
  bootOrder?: Uint;
  serial?: string;
  dedicatedIOThread?: boolean;
  cache?: string;
  io?: string;
  tag?: string;
  blockSize?: VmiBlockSize;
  shareable?: boolean;
  errorPolicy?: string;
  changedBlockTracking?: boolean;
}

/** `blockSize` of a disk. */
export interface VmiBlockSize {
  custom?: { logical?: Uint; physical?: Uint; discardGranularity?: Uint };
  matchVolume?: { enabled?: boolean };
}

/** Bus of a disk. */
export type DiskBus = 'virtio' | 'sata' | 'scsi' | 'usb';

/** One entry of `spec.domain.devices.inputs`. */
export interface VmiInput {
  name: string;
  type: string;
  bus?: string;
}

/** One entry of `spec.domain.devices.filesystems`. */
export interface VmiFilesystem {
  name: string;
  virtiofs?: object;
}

/** Claim of a dynamic resource allocation behind a GPU or host device. */
export interface VmiClaimRequest {
  claimName?: string;
  requestName?: string;
}

/** One entry of `spec.domain.devices.gpus`. */
export interface VmiGpu extends VmiClaimRequest {
  name: string;
  deviceName?: string;
  virtualGPUOptions?: { display?: { enabled?: boolean; ramFB?: { enabled?: boolean } } };
  tag?: string;
}

/** One entry of `spec.domain.devices.hostDevices`. */
export interface VmiHostDevice extends VmiClaimRequest {
  name: string;
  deviceName?: string;
  tag?: string;
}

/** `spec.domain.devices.watchdog`. */
export interface VmiWatchdog {
  name: string;
  i6300esb?: { action?: string };
  diag288?: { action?: string };
}
