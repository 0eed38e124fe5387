import type { Domain, DomainController, DomainControllerDriver, Vmi } from '@virtwire/vm-model';

import { resourceVariable } from './address-pool.ts';
import type { ConverterContext } from './context.ts';
import { guestTopology, vcpuCount } from './cpu.ts';
import { scsiIoThread } from './iothreads.ts';
import { annotationOf, busOf } from './vmi-traits.ts';

const PCI_HOLE_ANNOTATION = 'kubevirt.io/disablePCIHole64';

/**
 * USB, SCSI, PCI root and virtio-serial controllers.
 *
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/converter/compute/controllers.go
 */
export function configureControllers(vmi: Vmi, context: ConverterContext, domain: Domain): void {
  const { devices } = vmi.spec.domain;
  const controllers: DomainController[] = [
    { Type: 'usb', Index: '0', Model: needsUsb(vmi, context) ? 'qemu-xhci' : 'none' },
  ];
  if (devices.disableHotplug !== true || (devices.disks ?? []).some((disk) => busOf(disk) === 'scsi')) {
    controllers.push(scsiController(vmi, context));
  }
  if (context.arch.hasPciHole64 && annotationOf(vmi, PCI_HOLE_ANNOTATION)?.toLowerCase() === 'true') {
    controllers.push({ Type: 'pci', Index: '0', Model: 'pcie-root', PCIHole64: { Value: 0, Unit: 'KiB' } });
  }
  if (devices.autoattachSerialConsole !== false) {
    controllers.push({
      Type: 'virtio-serial',
      Index: '0',
      Model: context.virtioModel,
      ...(context.usesIommu ? { Driver: { IOMMU: 'on' } } : {}),
    });
  }
  domain.Spec.Devices.Controllers = controllers;
}

function scsiController(vmi: Vmi, context: ConverterContext): DomainController {
  const ioThread = scsiIoThread(vmi);
  const driver: DomainControllerDriver = {
    ...(context.usesIommu ? { IOMMU: 'on' } : {}),
    ...(ioThread === undefined ? {} : { IOThread: ioThread, Queues: vcpuCount(guestTopology(vmi)) }),
  };
  return {
    Type: 'scsi',
    Index: '0',
    Model: context.arch.scsiControllerModel ?? context.virtioModel,
    ...(Object.keys(driver).length > 0 ? { Driver: driver } : {}),
  };
}

function needsUsb(vmi: Vmi, context: ConverterContext): boolean {
  if (context.arch.name !== 'amd64') return context.arch.name === 'arm64';
  const { inputs, disks, clientPassthrough, hostDevices } = vmi.spec.domain.devices;
  return (
    (inputs ?? []).some(({ bus }) => bus === undefined || bus === '' || bus === 'usb') ||
    (disks ?? []).some(({ disk }) => disk?.bus === 'usb') ||
    clientPassthrough !== undefined ||
    (hostDevices ?? []).some(
      ({ deviceName }) =>
        context.circumstances.environment[resourceVariable('USB_RESOURCE', deviceName ?? '')] !== undefined,
    )
  );
}
