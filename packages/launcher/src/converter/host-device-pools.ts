import type { DomainAddress, DomainHostDevice, Vmi, VmiGpu, VmiHostDevice } from '@virtwire/vm-model';

import { LauncherError, textOf } from '../errors.ts';
import { AddressPool, resourceVariable } from './address-pool.ts';
import type { Circumstances } from './circumstances.ts';
import { isClaimed } from './device-claims.ts';
import { parsePciAddress } from './pci-address.ts';

const USB_ADDRESS = /^([^:]+):([^:]+)$/;

interface Wanted {
  readonly name: string;
  readonly deviceName: string;
}

/**
 * Host devices of `spec.domain.devices.hostDevices`, out of the addresses that the device plugins gave the pod:
 * PCI devices first, then mediated ones, then USB.
 *
 * @throws {LauncherError} `ConvertFailed` when a device has no address.
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/device/hostdevice/generic/hostdev.go
 */
export function genericHostDevices(vmi: Vmi, circumstances: Circumstances): readonly DomainHostDevice[] {
  if (circumstances.isMigrationTarget) return [];
  const specs = (vmi.spec.domain.devices.hostDevices ?? []).filter((device) => !isClaimed(device));
  const wanted = specs.map(toWanted);
  const prefix = 'failed to create generic host-devices: ';
  const pci = createDevices(wanted, 'PCI_RESOURCE', circumstances, prefix, (device, address) =>
    pciHostDevice(device.name, `hostdevice-${device.name}`, address),
  );
  const mdev = createDevices(wanted, 'MDEV_PCI_RESOURCE', circumstances, prefix, (device, uuid) =>
    mdevHostDevice(`hostdevice-${device.name}`, uuid),
  );
  const usb = createDevices(wanted, 'USB_RESOURCE', circumstances, '', (device, address) =>
    usbHostDevice(`usb-host-${device.name}`, address),
  );
  const devices = [...pci, ...mdev, ...usb];
  if (devices.length !== specs.length && specs.length > 0) {
    throw new LauncherError(
      'ConvertFailed',
      `${prefix}the number of device plugin HostDevice/s do not match the number of devices:\n` +
        `HostDevice: [${specs.map(renderHostDevice).join(' ')}]\nDevice: [${devices.map(renderFound).join(' ')}]`,
    );
  }
  return devices;
}

/**
 * GPUs of `spec.domain.devices.gpus`: whole ones first, then virtual ones.
 *
 * @throws {LauncherError} `ConvertFailed` when a GPU has no address.
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/device/hostdevice/gpu/hostdev.go
 */
export function gpuHostDevices(vmi: Vmi, circumstances: Circumstances): readonly DomainHostDevice[] {
  const specs = (vmi.spec.domain.devices.gpus ?? []).filter((gpu) => !isClaimed(gpu));
  if (circumstances.isMigrationTarget && !mayMigrateVgpu(vmi, specs, circumstances)) return [];
  const prefix = 'failed to create GPU host-devices: ';
  const wanted = specs.map(toWanted);
  const pci = createDevices(wanted, 'PCI_RESOURCE', circumstances, prefix, (gpu, address, index) => ({
    ...pciHostDevice(gpu.name, `gpu-${gpu.name}`, address),
    ...requestedDisplay(specs[index]),
  }));
  let hasDefaultDisplay = !wantsDisplay(vmi);
  const mdev = createDevices(wanted, 'MDEV_PCI_RESOURCE', circumstances, prefix, (gpu, uuid, index) => {
    const display = hasDefaultDisplay ? { Display: 'on', RamFB: 'on' } : vgpuDisplay(specs[index]);
    hasDefaultDisplay = false;
    return { ...mdevHostDevice(`gpu-${gpu.name}`, uuid), ...display };
  });
  const devices = [...pci, ...mdev];
  if (devices.length !== specs.length && specs.length > 0) {
    throw new LauncherError(
      'ConvertFailed',
      `${prefix}the number of device plugin GPU/s do not match the number of devices:\n` +
        `GPU: [${specs.map(renderGpu).join(' ')}]\nDevice: [${devices.map(renderFound).join(' ')}]`,
    );
  }
  return devices;
}

/** A whole host PCI device under an alias. */
export function pciHostDevice(name: string, alias: string, address: string): DomainHostDevice {
  let source: DomainAddress;
  try {
    source = parsePciAddress(address);
  } catch (error) {
    throw new LauncherError('ConvertFailed', `failed to create PCI device for ${name}: ${textOf(error)}`, {
      cause: error,
    });
  }
  return { Type: 'pci', Managed: 'no', Source: { Address: source }, Alias: { Name: alias, UserDefined: true } };
}

/** A mediated host device under an alias. */
export function mdevHostDevice(alias: string, uuid: string): DomainHostDevice {
  return {
    Type: 'mdev',
    Mode: 'subsystem',
    Model: 'vfio-pci',
    Source: { Address: { UUID: uuid } },
    Alias: { Name: alias, UserDefined: true },
  };
}

function usbHostDevice(alias: string, address: string): DomainHostDevice {
  const parts = USB_ADDRESS.exec(address);
  if (parts === null) throw new LauncherError('ConvertFailed', `Bad value: ${address}`);
  return {
    Type: 'usb',
    Mode: 'subsystem',
    Source: { Address: { Bus: parts[1], Device: parts[2] } },
    Alias: { Name: alias, UserDefined: true },
  };
}

function createDevices(
  wanted: readonly Wanted[],
  prefix: string,
  circumstances: Circumstances,
  errorPrefix: string,
  create: (device: Wanted, address: string, index: number) => DomainHostDevice,
): DomainHostDevice[] {
  const pool = new AddressPool(
    prefix,
    wanted.map((device) => device.deviceName),
    circumstances.environment,
  );
  return wanted.flatMap((device, index) => {
    const address = pool.take(device.deviceName);
    if (address === undefined) return [];
    try {
      return [create(device, address, index)];
    } catch (error) {
      const doing = `${errorPrefix}failed to create hostdevice for ${device.name}: `;
      throw LauncherError.from(error, 'ConvertFailed', doing);
    }
  });
}

/** Whether any GPU says what it wants of its display. */
export function wantsDisplay(vmi: Vmi): boolean {
  return (vmi.spec.domain.devices.gpus ?? []).some((gpu) => gpu.virtualGPUOptions?.display !== undefined);
}

/** Virtual GPUs with options of their own: on unless they say otherwise. */
export function vgpuDisplay(gpu: VmiGpu | undefined): Pick<DomainHostDevice, 'Display' | 'RamFB'> {
  const display = gpu?.virtualGPUOptions?.display;
  if (display === undefined || display.enabled === false) return {};
  return { Display: 'on', ...(display.ramFB?.enabled === false ? {} : { RamFB: 'on' }) };
}

/** Whole GPUs: only what is asked for. */
function requestedDisplay(gpu: VmiGpu | undefined): Pick<DomainHostDevice, 'Display' | 'RamFB'> {
  const display = gpu?.virtualGPUOptions?.display;
  if (display?.enabled !== true) return {};
  return { Display: 'on', ...(display.ramFB?.enabled === true ? { RamFB: 'on' } : {}) };
}

function mayMigrateVgpu(vmi: Vmi, gpus: readonly VmiGpu[], circumstances: Circumstances): boolean {
  if (circumstances.options?.clusterConfig?.VGPULiveMigrationEnabled !== true) return false;
  const mediated = gpus.filter(
    (gpu) => circumstances.environment[resourceVariable('MDEV_PCI_RESOURCE', gpu.deviceName ?? '')] !== undefined,
  );
  if (mediated.length === 0) return false;
  if (mediated.length > 1) {
    throw new LauncherError(
      'ConvertFailed',
      `vGPU live migration currently only supports a single vGPU, found ${String(mediated.length)} for vmi ${vmi.metadata.name}`,
    );
  }
  if (!circumstances.hasLibvirtHookServer) {
    throw new LauncherError(
      'ConvertFailed',
      `vGPU live migration requires LibvirtHooksServerAndClient feature gate for vmi ${vmi.metadata.name}`,
    );
  }
  return true;
}

function toWanted(device: { readonly name: string; readonly deviceName?: string }): Wanted {
  return { name: device.name, deviceName: device.deviceName ?? '' };
}

/** The Go struct as its `%v` prints it. */
function renderHostDevice(device: VmiHostDevice): string {
  return `{${device.name} ${device.deviceName ?? ''} <nil> ${device.tag ?? ''}}`;
}

function renderGpu(gpu: VmiGpu): string {
  return `{${gpu.name} ${gpu.deviceName ?? ''} <nil> <nil> ${gpu.tag ?? ''}}`;
}

function renderFound(device: DomainHostDevice): string {
  return device.Alias?.Name ?? '';
}
