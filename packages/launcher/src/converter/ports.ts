import type { DomainSpec, Vmi } from '@virtwire/vm-model';

import { LauncherError } from '../errors.ts';
import { pciDevices } from './pci-devices.ts';
import { annotationOf } from './vmi-traits.ts';

const SLOT_COUNT_ANNOTATION = 'kubevirt.io/pci-interface-slot-count';
const ROOT_COMPLEX_ANNOTATION = 'kubevirt.io/placePCIDevicesOnRootComplex';
const DEFAULT_INTERFACE_SLOTS = 4;
/** More than any machine has; each free one becomes an interface of the domain for one define. */
const MAX_INTERFACE_SLOTS = 16_384;
const LARGE_GUEST_BYTES = 2n << 30n;

/** Ports to keep free for what is plugged in later. */
export interface HotplugPorts {
  /** PCI devices that the domain has now. */
  readonly pciDevices: number;
  /** Interfaces to add for one define, so that libvirt makes ports for them. */
  readonly placeholderInterfaces: number;
  /** `pcie-root-port` controllers to add. */
  readonly extraRootPorts: number;
}

/**
 * Counts the PCI ports that a domain wants for hotplug; undefined on machines without PCI Express.
 *
 * @throws {LauncherError} `ConvertFailed` for an annotation that is no number.
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/manager.go, allocateHotplugPorts
 */
export function countHotplugPorts(vmi: Vmi, spec: DomainSpec): HotplugPorts | undefined {
  if (!supportsPcieHotplug(vmi)) return undefined;
  const inUse = pciDevices(spec).length;
  const isOnRootComplex = annotationOf(vmi, ROOT_COMPLEX_ANNOTATION) === 'true';
  const placeholderInterfaces = placeholderCount(vmi, isOnRootComplex);
  const isLarge = BigInt(spec.Memory.Value ?? 0) > LARGE_GUEST_BYTES;
  const [total, minFree] = isLarge ? [16, 6] : [8, 3];
  const wanted = Math.max(total - inUse, minFree);
  const extraRootPorts = isOnRootComplex ? 0 : Math.max(0, wanted - placeholderInterfaces);
  return { pciDevices: inUse, placeholderInterfaces, extraRootPorts };
}

/** Whether the machine of a VMI has PCI Express ports; without a named machine it has. */
function supportsPcieHotplug(vmi: Vmi): boolean {
  const architecture = vmi.spec.architecture ?? '';
  if (architecture !== 'amd64' && architecture !== 'arm64' && architecture !== '') return false;
  const { machine } = vmi.spec.domain;
  if (machine === undefined) return true;
  const type = machine.type ?? '';
  return type.includes('q35') || type.startsWith('virt');
}

function placeholderCount(vmi: Vmi, isOnRootComplex: boolean): number {
  const interfaces = vmi.spec.domain.devices.interfaces?.length ?? 0;
  const annotation = annotationOf(vmi, SLOT_COUNT_ANNOTATION);
  if (annotation !== undefined) return Math.max(0, parseCount(annotation) - interfaces);
  if (isOnRootComplex || interfaces === 0) return 0;
  return Math.max(0, DEFAULT_INTERFACE_SLOTS - interfaces);
}

/** The cause is in the words of Go's strconv.Atoi. */
function parseCount(text: string): number {
  const isNumber = /^[+-]?\d+$/.test(text);
  const count = Number(text);
  if (isNumber && count <= MAX_INTERFACE_SLOTS) return count;
  const quoted = JSON.stringify(text);
  const fault = isNumber ? 'value out of range' : 'invalid syntax';
  const cause = `strconv.Atoi: parsing ${quoted}: ${fault}`;
  throw new LauncherError('ConvertFailed', `invalid ${SLOT_COUNT_ANNOTATION} annotation value ${quoted}: ${cause}`);
}
