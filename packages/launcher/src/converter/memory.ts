import type { Domain, DomainMemory, Quantity, Vmi } from '@virtwire/vm-model';
import { parseQuantity, quantityValue } from '@virtwire/vm-model';

import { LauncherError } from '../errors.ts';
import { annotationOf } from './vmi-traits.ts';

const MEMFD_ANNOTATION = 'kubevirt.io/memfd';
const KIB = 1024n;

/** The guest's memory: what it says, else the limit without a request, else the request. */
export function guestMemory(vmi: Vmi): Quantity {
  const { memory, resources } = vmi.spec.domain;
  if (memory?.guest !== undefined) return memory.guest;
  const request = resources?.requests?.['memory'];
  return request ?? resources?.limits?.['memory'] ?? '0';
}

/**
 * A quantity in bytes. What Go does not hold as a plain integer loses one byte.
 *
 * @throws {LauncherError} `ConvertFailed` for a negative amount.
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/converter/vcpu/vcpu.go, QuantityToByte
 */
export function quantityToBytes(quantity: Quantity): bigint {
  const value = quantityValue(quantity);
  const bytes = parseQuantity(quantity)?.isPlainInteger === false ? value - 1n : value;
  if (bytes < 0n) {
    throw new LauncherError('ConvertFailed', `Memory size '${String(quantity)}' must be greater than or equal to 0`);
  }
  return bytes;
}

/** Memory now and at most. */
export function configureMemory(vmi: Vmi, domain: Domain): void {
  const guest = vmi.spec.domain.memory?.guest;
  const maxGuest = vmi.spec.domain.memory?.maxGuest;
  domain.Spec.Memory = inBytes(guestMemory(vmi));
  if (maxGuest === undefined || (guest !== undefined && quantityValue(maxGuest) === quantityValue(guest))) return;
  domain.Spec.MaxMemory = { ...inBytes(maxGuest), Slots: 0 };
  domain.Spec.Memory = inBytes(guest ?? '0');
}

/**
 * Huge pages, memory shared with helper processes, memfd, and the NUMA cell that memfd wants.
 *
 * @source KubeVirt v1.9.0 pkg/virt-launcher/virtwrap/converter/converter.go, memory backing
 */
export function configureMemoryBacking(vmi: Vmi, domain: Domain): void {
  const { memory, devices } = vmi.spec.domain;
  let isMemfd = false;
  if (memory?.hugepages !== undefined) {
    domain.Spec.MemoryBacking = { HugePages: {} };
    isMemfd = annotationOf(vmi, MEMFD_ANNOTATION) !== 'false';
  }
  const isShared =
    (devices.filesystems ?? []).some(({ virtiofs }) => virtiofs !== undefined) ||
    (devices.interfaces ?? []).some(({ passt, passtBinding }) => passt !== undefined || passtBinding !== undefined);
  if (isShared) {
    domain.Spec.MemoryBacking ??= {};
    domain.Spec.MemoryBacking.Access = { Mode: 'shared' };
    isMemfd = true;
  }
  if (!isMemfd) return;
  domain.Spec.MemoryBacking ??= {};
  domain.Spec.MemoryBacking.Source = { Type: 'memfd' };
  if (domain.Spec.CPU.NUMA !== undefined) return;
  const vcpus = domain.Spec.VCPU?.CPUs ?? 1;
  const kib = quantityValue(guestMemory(vmi)) / KIB;
  domain.Spec.CPU.NUMA = { Cells: [{ ID: '0', CPUs: `0-${String(vcpus - 1)}`, Memory: toInt64(kib), Unit: 'KiB' }] };
}

/** A 64-bit amount as the domain object holds it. */
export function toInt64(value: bigint): number | bigint {
  return value <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(value) : value;
}

function inBytes(quantity: Quantity): DomainMemory {
  return { Value: toInt64(quantityToBytes(quantity)), Unit: 'b' };
}
