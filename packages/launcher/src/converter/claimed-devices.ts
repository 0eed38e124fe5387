import type { DomainHostDevice, Vmi, VmiClaimRequest, VmiGpu, VmiHostDevice, VmiInterface } from '@virtwire/vm-model';

import { LauncherError, textOf } from '../errors.ts';
import type { Circumstances } from './circumstances.ts';
import { claimKey, isClaimed } from './device-claims.ts';
import { mdevHostDevice, pciHostDevice, vgpuDisplay, wantsDisplay } from './host-device-pools.ts';
import { nonEmpty } from './non-empty.ts';
import { withGuestPlace } from './sriov.ts';

/**
 * Host devices that resource claims gave to `spec.domain.devices.hostDevices`.
 *
 * @throws {LauncherError} `ConvertFailed` when a claim has no usable device.
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/device/hostdevice/dra/generic_hostdev.go
 */
export function claimedHostDevices(vmi: Vmi, circumstances: Circumstances): readonly DomainHostDevice[] {
  if (circumstances.isMigrationTarget) return [];
  const model = vmi.spec.architecture === 's390x' ? 'vfio-ap' : 'vfio-pci';
  return (vmi.spec.domain.devices.hostDevices ?? []).filter(isClaimed).map((device) =>
    orFail('failed to create dra generic host-devices: ', () => {
      const found = claimedDevice('HostDevice', `dra-hostdevice-${device.name}`, device, circumstances);
      return found.Type === 'mdev' ? { ...found, Model: model } : found;
    }),
  );
}

/**
 * GPUs that resource claims gave to `spec.domain.devices.gpus`; without display options anywhere the first virtual one
 * shows its picture.
 *
 * @throws {LauncherError} `ConvertFailed` when a claim has no usable device.
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/device/hostdevice/dra/gpu_hostdev.go
 */
export function claimedGpus(vmi: Vmi, circumstances: Circumstances): readonly DomainHostDevice[] {
  if (circumstances.isMigrationTarget) return [];
  const gpus = vmi.spec.domain.devices.gpus ?? [];
  let hasDefaultDisplay = !wantsDisplay(vmi);
  return gpus.filter(isClaimed).map((gpu: VmiGpu) =>
    orFail('failed to create DRA GPU host-devices: ', () => {
      const found = claimedDevice('GPU', `dra-gpu-${gpu.name}`, gpu, circumstances);
      if (found.Type !== 'mdev') return found;
      const display = hasDefaultDisplay ? { Display: 'on', RamFB: 'on' } : vgpuDisplay(gpu);
      hasDefaultDisplay = false;
      return { ...found, ...display };
    }),
  );
}

/**
 * Virtual functions that resource claims gave to networks.
 *
 * @throws {LauncherError} `ConvertFailed` when a claim has no usable device.
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/device/hostdevice/sriov/hostdev.go, CreateDRAHostDevices
 */
export function claimedVirtualFunctions(vmi: Vmi, circumstances: Circumstances): readonly DomainHostDevice[] {
  if (circumstances.isMigrationTarget) return [];
  return (vmi.spec.domain.devices.interfaces ?? []).flatMap((iface) => {
    const claim = vmi.spec.networks?.find(({ name }) => name === iface.name)?.resourceClaim;
    if (iface.sriov === undefined || claim === undefined) return [];
    return [
      orFail(`failed to create hostdevice for ${iface.name}: `, () => virtualFunction(iface, claim, circumstances)),
    ];
  });
}

function virtualFunction(iface: VmiInterface, claim: VmiClaimRequest, circumstances: Circumstances): DomainHostDevice {
  const found = circumstances.deviceClaims.get(claimKey(claim));
  if (typeof found === 'string') throw new LauncherError('ConvertFailed', found);
  if (found?.pciBusId === undefined) throw new LauncherError('ConvertFailed', notFound('pciBusID', claim));
  return withGuestPlace(pciHostDevice(iface.name, `sriov-${iface.name}`, found.pciBusId), iface);
}

/** A mediated device also shows the PCI device that it is part of, so its own identity counts first. */
function claimedDevice(
  kind: 'HostDevice' | 'GPU',
  alias: string,
  device: VmiHostDevice | VmiGpu,
  circumstances: Circumstances,
): DomainHostDevice {
  if (nonEmpty(device.claimName) === undefined || nonEmpty(device.requestName) === undefined) {
    throw new LauncherError('ConvertFailed', `${kind} ${device.name} has incomplete ClaimRequest`);
  }
  const found = circumstances.deviceClaims.get(claimKey(device));
  if (typeof found === 'object') {
    if (found.mdevUuid !== undefined) return mdevHostDevice(alias, found.mdevUuid);
    if (found.pciBusId !== undefined) return pciHostDevice(device.name, alias, found.pciBusId);
  }
  const claim = `claim ${device.claimName ?? ''} request ${device.requestName ?? ''}`;
  throw new LauncherError(
    'ConvertFailed',
    `${kind} ${device.name} has no mdevUUID or pciBusID in metadata for ${claim} ` +
      `(mdev: ${found === undefined || typeof found === 'object' ? notFound('mdevUUID', device) : found}, ` +
      `pci: ${found === undefined || typeof found === 'object' ? notFound('pciBusID', device) : found})`,
  );
}

function notFound(attribute: string, { claimName = '', requestName = '' }: VmiClaimRequest): string {
  return `${attribute} not found for claim ${JSON.stringify(claimName)} request ${JSON.stringify(requestName)}`;
}

function orFail<T>(doing: string, action: () => T): T {
  try {
    return action();
  } catch (error) {
    throw new LauncherError('ConvertFailed', `${doing}${textOf(error)}`, { cause: error });
  }
}
