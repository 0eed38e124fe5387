import { parseQuantity, quantityValue, renderQuantity } from '@virtwire/vm-model';
import type { DomainMemory, DomainMemoryDevice, Quantity, Vmi } from '@virtwire/vm-model';

import { LauncherError } from '../errors.ts';
import { quantityToBytes, toInt64 } from './memory.ts';

const MIB = 1n << 20n;
/** QEMU recommends it: a transparent huge page of the host. */
const BLOCK = 2n * MIB;
const GIGANTIC_BLOCK = 1024n * MIB;

/**
 * The virtio-mem device through which a running guest gets what its memory exceeds that of its boot.
 *
 * @throws {LauncherError} `ConvertFailed` when the VMI does not say its amounts, or has less than at boot.
 * @source KubeVirt v1.9.0 pkg/liveupdate/memory/memory.go, BuildMemoryDevice
 */
export function memoryDeviceOf(vmi: Vmi): DomainMemoryDevice {
  const { memory } = vmi.spec.domain;
  const atBoot = vmi.status?.memory?.guestAtBoot;
  if (memory?.guest === undefined || memory.maxGuest === undefined || atBoot === undefined) {
    throw new LauncherError('ConvertFailed', 'the VMI does not state guest, maxGuest and guestAtBoot of its memory');
  }
  return {
    Model: 'virtio-mem',
    Target: {
      Size: inBytes(quantityToBytes(difference(memory.maxGuest, atBoot))),
      Requested: inBytes(quantityToBytes(difference(memory.guest, atBoot))),
      Node: '0',
      Block: inBytes(memory.hugepages?.pageSize === '1Gi' ? GIGANTIC_BLOCK : BLOCK),
    },
  };
}

/** Printed as the first amount is, which decides how an error names it. */
function difference(minuend: Quantity, subtrahend: Quantity): Quantity {
  const first = parseQuantity(minuend);
  const second = parseQuantity(subtrahend);
  if (first === undefined || second === undefined) return String(quantityValue(minuend) - quantityValue(subtrahend));
  return renderQuantity({ nano: first.nano - second.nano, format: first.format });
}

function inBytes(bytes: bigint): DomainMemory {
  return { Value: toInt64(bytes), Unit: 'b' };
}
