import type { Vmi } from '@virtwire/vm-model';

import { LauncherError } from '../errors.ts';
import type { ConverterContext } from './context.ts';
import { annotationOf, hasDedicatedCpus } from './vmi-traits.ts';

const PCI_HOLE_ANNOTATION = 'kubevirt.io/disablePCIHole64';
const ROOT_COMPLEX_ANNOTATION = 'kubevirt.io/placePCIDevicesOnRootComplex';

/**
 * Refuses a request for NVIDIA Grace IO virtualisation that cannot be met, naming what it lacks.
 *
 * @throws {LauncherError} `ConvertFailed`.
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/converter/grace.go, ValidateGraceIOVirtualizationConversion
 */
export function checkGraceRequest(vmi: Vmi, context: ConverterContext): void {
  if (!wantsGrace(context)) return;
  const obstacle = graceObstacle(vmi, context);
  if (obstacle !== undefined) throw new LauncherError('ConvertFailed', obstacle);
}

/** Whether Grace devices are asked for. */
export function wantsGrace({ circumstances }: ConverterContext): boolean {
  return (circumstances.options?.GraceHostDeviceAliases ?? []).length > 0;
}

function graceObstacle(vmi: Vmi, context: ConverterContext): string | undefined {
  const switches = context.circumstances.options?.clusterConfig;
  if (switches?.GraceIOVirtualizationEnabled !== true) {
    return 'GraceIOVirtualization conversion requested without the GraceIOVirtualization feature gate';
  }
  if (!switches.PCINUMAAwareTopologyEnabled) {
    return 'GraceIOVirtualization requires PCINUMAAwareTopology for PCI placement';
  }
  if (!context.circumstances.hasIommuFd)
    return 'GraceIOVirtualization requires an IOMMUFD file descriptor in virt-launcher';
  if (!hasDedicatedCpus(vmi)) return 'GraceIOVirtualization requires dedicated CPU placement';
  if (!context.arch.hasPciPlacement) {
    return `GraceIOVirtualization requires PCIe placement support on architecture ${context.arch.name}`;
  }
  if (annotationOf(vmi, PCI_HOLE_ANNOTATION) === 'true') return 'GraceIOVirtualization requires the 64-bit PCI hole';
  if (annotationOf(vmi, ROOT_COMPLEX_ANNOTATION) === 'true') {
    return 'GraceIOVirtualization cannot be combined with PCI root-complex placement';
  }
  return undefined;
}
